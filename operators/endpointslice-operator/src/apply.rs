//! Executes a plan: creates, changes and deletes slices, and tells people.
//!
//! Decides nothing. A slice is changed by a merge patch under the uid and resourceVersion it was decided on: what
//! others wrote there stays, and what they wrote since then makes it fail.
//! Left out: a slice that is gone when it is to be deleted is as good as deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::json;
use shared::api::labels::Labels;
use shared::api::names::pod_name_prefix;
use shared::api::object::{Key, Kind};
use shared::api::owner::OwnerReference;
use shared::api::time::Time;
use shared::runtime::api_error::ApiError;
use shared::runtime::cache::Cache;
use shared::runtime::control::{Control, DeleteOptions, KeyControl, Patch, Preconditions, Written};
use shared::runtime::events::{EventType, Recorder};

use crate::metrics::{EndpointSliceMetrics, operations, results};
use crate::objects::{
    AddressType, ENDPOINT_SLICES, Endpoint, EndpointPort, EndpointSlice, Service, annotations, reasons,
};
use crate::observe::Observed;
use crate::observe::tracker::Tracker;
use crate::plan::utils::slice_labels;
use crate::plan::{Creation, Deletion, Family, Plan, PlannedEvent, Skipped, Slices, Update};

/// Writes slices.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: EndpointSliceMetrics,
    pub(crate) endpoint_slices: Arc<Cache<EndpointSlice>>,
    pub(crate) tracker: Arc<Tracker>,
}

/// The result of executing a plan.
pub(crate) struct Outcome {
    /// The error.
    pub(crate) error: Option<anyhow::Error>,
}

/// The values that all writes for a Service share.
struct Task<'a> {
    service: &'a Service,
    trigger: Option<Time>,
}

impl Writer {
    /// Does what was planned. A pod that is left out is named in the event, but fails nothing.
    ///
    /// Upstream: `Reconcile`, `staging/src/k8s.io/endpointslice/reconciler.go`.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let (service, missing) = (&observed.service, plan.missing_nodes());
        let is_whole = missing.is_empty();
        self.tracker.await_nodes(&service.metadata.key, missing);
        let error = match plan {
            Plan::Ignore(_) => {
                self.tracker.forget_slices(&service.metadata.key);
                None
            }
            Plan::Write(slices) => {
                self.tracker.remember_state(&service.metadata.key, &observed.state);
                self.write_all(service, slices).await.err()
            }
        };
        self.metrics.synced(if is_whole && error.is_none() { results::SUCCESS } else { results::ERROR });
        Outcome { error }
    }

    /// Forgets a Service that is gone. Its slices are collected as garbage.
    pub(crate) fn forget(&self, service: &Key) {
        self.tracker.forget(service);
        self.metrics.forget(service);
        self.control.forget(service, None);
        self.metrics.synced(results::SUCCESS);
    }

    async fn write_all(&self, service: &Service, slices: Slices) -> anyhow::Result<()> {
        self.metrics.decided(service, &slices);
        let Slices { families, unsupported, pods: _, hints, trigger } = slices;
        self.tracker.remember_hints(&service.metadata.key, hints);
        let task = Task { service, trigger };
        let mut report = Report::default();
        for family in families {
            let Family {
                address_type,
                create,
                update,
                delete,
                withheld: _,
                skipped,
                notices,
                added: _,
                removed: _,
                sizes: _,
            } = family;
            report.messages.extend(skipped.iter().map(|skipped| not_found(service, skipped)));
            report.note(self.write(&task, &address_type, &create, &update, &delete).await);
            for PlannedEvent { kind, reason, message } in notices {
                self.recorder.event(&service.reference(), kind, reason, message);
            }
        }
        for deletion in &unsupported {
            let verb = || format!("error deleting {} EndpointSlice", deletion.key.name());
            report.note(self.delete(service, deletion).await.with_context(|| of_service(&verb(), service)));
        }
        self.tell(service, report)
    }

    /// Upstream: `syncService`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    fn tell(&self, service: &Service, Report { messages, errors }: Report) -> anyhow::Result<()> {
        if !messages.is_empty() {
            let message = failed_to_update(service, messages);
            self.recorder.event(&service.reference(), EventType::Warning, reasons::FAILED_TO_UPDATE, message);
        }
        shared::runtime::control::aggregate(errors)
    }

    /// Writes the slices of one address type, until a write fails.
    ///
    /// Upstream: `finalize`, `reconciler.go`.
    async fn write(
        &self,
        task: &Task<'_>,
        address_type: &AddressType,
        create: &[Creation],
        update: &[Update],
        delete: &[Deletion],
    ) -> anyhow::Result<()> {
        let service = task.service;
        for creation in create {
            match self.create(task, address_type, creation).await {
                Ok(()) => {}
                // Nothing can be created there ever again.
                Err(error) if error.is_namespace_terminating() => return Ok(()),
                Err(error) => return Err(error).with_context(|| of_service("failed to create EndpointSlice", service)),
            }
        }
        for update in update {
            let verb = || format!("failed to update {} EndpointSlice", update.key.name());
            self.update(task, update).await.with_context(|| of_service(&verb(), service))?;
        }
        for deletion in delete {
            let verb = || format!("failed to delete {} EndpointSlice", deletion.key.name());
            self.delete(service, deletion).await.with_context(|| of_service(&verb(), service))?;
        }
        self.metrics.finalized(service, create.len() + update.len() + delete.len());
        Ok(())
    }

    async fn create(
        &self,
        task: &Task<'_>,
        address_type: &AddressType,
        Creation { ports, endpoints }: &Creation,
    ) -> Result<(), ApiError> {
        let service = task.service;
        let (owner, trigger) = (service.owner(), task.trigger.as_ref());
        let body = json(&Body {
            api_version: ENDPOINT_SLICES.api_version(),
            kind: &ENDPOINT_SLICES.kind,
            metadata: BodyMetadata {
                generate_name: pod_name_prefix(service.metadata.name()),
                namespace: service.metadata.namespace(),
                labels: slice_labels(service),
                annotations: trigger.map(|time| (annotations::TRIGGER_TIME, time)).into_iter().collect(),
                owner_references: [owner.controller_ref()],
            },
            address_type,
            ports,
            endpoints,
        });
        let created = self.control_of(service).create(&ENDPOINT_SLICES, service.metadata.namespace(), body).await;
        self.note(service, operations::CREATE, created)
    }

    async fn update(&self, task: &Task<'_>, update: &Update) -> Result<(), ApiError> {
        let Update { key, uid, resource_version, labels, ports, endpoints, changes: _ } = update;
        let preconditions = Preconditions { uid: *uid, resource_version: Some(*resource_version) };
        let patch = Patch::merge(&PatchBody {
            metadata: PatchMetadata { annotations: [(annotations::TRIGGER_TIME, task.trigger)].into(), labels },
            ports: ports.as_deref(),
            endpoints: endpoints.as_deref(),
        });
        let updated = self.control_of(task.service).patch(&ENDPOINT_SLICES, key, preconditions, patch).await;
        self.note(task.service, operations::UPDATE, updated)
    }

    async fn delete(&self, service: &Service, Deletion { key, uid, why: _ }: &Deletion) -> Result<(), ApiError> {
        match self.control_of(service).delete(&ENDPOINT_SLICES, key, &DeleteOptions::of(*uid)).await {
            Ok(()) => {
                // Where the event has come before the answer, nothing is to be expected any more.
                if self.endpoint_slices.get(key).is_some_and(|slice| slice.metadata.uid == *uid) {
                    self.tracker.deleted(&service.metadata.key, *uid);
                }
                self.metrics.wrote(operations::DELETE);
                Ok(())
            }
            // Not a conflict: if a webhook has refused in these words, the slice is still there.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn control_of<'a>(&'a self, service: &'a Service) -> KeyControl<'a> {
        self.control.for_key(&service.metadata.key, service.metadata.uid)
    }

    fn note(
        &self,
        service: &Service,
        operation: &'static str,
        outcome: Result<Written, ApiError>,
    ) -> Result<(), ApiError> {
        let written = outcome?.metadata;
        self.tracker.wrote(&service.metadata.key, written.uid, written.generation);
        self.metrics.wrote(operation);
        Ok(())
    }
}

/// The failures of a sync.
#[derive(Default)]
struct Report {
    /// All of it, as the event says it.
    messages: Vec<String>,
    /// The errors.
    errors: Vec<anyhow::Error>,
}

impl Report {
    fn note(&mut self, outcome: anyhow::Result<()>) {
        if let Err(error) = outcome {
            self.messages.push(format!("{error:#}"));
            self.errors.push(error);
        }
    }
}

fn failed_to_update(service: &Service, messages: Vec<String>) -> String {
    format!("{}: {}", of_service("Error updating Endpoint Slices", service), aggregated(messages))
}

fn not_found(service: &Service, Skipped { pod, node }: &Skipped) -> String {
    let skipping = of_service(&format!("skipping Pod {}", pod.name()), service);
    format!("{skipping}: Node {node} Not Found")
}

fn of_service(what: &str, service: &Service) -> String {
    format!("{what} for Service {}", service.metadata.key)
}

/// Each error once, in brackets where there are several.
///
/// Upstream: `aggregate.Error`, `staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go`.
fn aggregated(messages: Vec<String>) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in messages {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// A new slice.
///
/// Upstream: `newEndpointSlice`, `staging/src/k8s.io/endpointslice/utils.go`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: BodyMetadata<'a>,
    address_type: &'a AddressType,
    ports: &'a [EndpointPort],
    endpoints: &'a [Endpoint],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodyMetadata<'a> {
    generate_name: String,
    namespace: &'a str,
    labels: Labels,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, &'a Time>,
    owner_references: [OwnerReference<'a>; 1],
}

/// The changed fields of a slice; `null` removes one.
#[derive(Serialize)]
struct PatchBody<'a> {
    metadata: PatchMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<&'a [EndpointPort]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<&'a [Endpoint]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchMetadata<'a> {
    annotations: BTreeMap<&'static str, Option<Time>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<Text, Option<Text>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn an_event_says_each_error_once() {
        let check = |errors: &[&'static str], expected: &str| {
            let mut report = Report::default();
            for error in errors {
                report.note(Err(anyhow!(*error).context("failed")));
            }
            assert_eq!(aggregated(report.messages), expected);
        };
        check(&["a"], "failed: a");
        check(&["a", "a"], "failed: a");
        check(&["a", "b", "a"], "[failed: a, failed: b]");
    }

    #[test]
    fn failures_are_named_in_upstreams_words() {
        let service = shared::testing::object("v1", "Service", "web").build::<Service>();
        let pod = Skipped { pod: Key::new("default", "a"), node: Text::new("gone") };
        let skipped = "skipping Pod a for Service default/web: Node gone Not Found";
        let mut report = Report { messages: vec![not_found(&service, &pod)], errors: Vec::new() };
        report.note(Ok(()));
        report.note(Err(anyhow!("no").context(of_service("failed to create EndpointSlice", &service))));
        assert_eq!(report.errors.len(), 1, "a pod that is left out is no failure");
        assert_eq!(
            failed_to_update(&service, report.messages),
            format!(
                "Error updating Endpoint Slices for Service default/web: \
                 [{skipped}, failed to create EndpointSlice for Service default/web: no]"
            )
        );
    }
}
