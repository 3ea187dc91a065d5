//! Executes a plan: creates, changes and deletes slices, and tells people.
//!
//! Decides nothing. A slice is changed by a merge patch under the uid and resourceVersion it was decided on: fields that
//! this build does not know stay, and what others wrote since then makes it fail.
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
use shared::controllers::endpoints::metrics::operations;
use shared::runtime::api_error::ApiError;
use shared::runtime::cache::Cache;
use shared::runtime::control::{Control, DeleteOptions, KeyControl, Patch, Preconditions, Written, aggregate};
use shared::runtime::events::{EventType, Recorder};

use crate::metrics::MirroringMetrics;
use crate::objects::{AddressType, ENDPOINT_SLICES, Endpoint, EndpointPort, EndpointSlice, Endpoints};
use crate::observe::{Observed, Tracker};
use crate::plan::{CleanUp, Creation, Deletion, Mirrored, Notice, Plan, Update};

/// Writes slices.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: MirroringMetrics,
    pub(crate) endpoint_slices: Arc<Cache<EndpointSlice>>,
    pub(crate) tracker: Tracker,
}

/// The result of executing a plan.
pub(crate) struct Outcome {
    /// The error.
    pub(crate) error: Option<anyhow::Error>,
}

impl Writer {
    /// Does what was planned.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let done = match plan {
            Plan::CleanUp(clean_up) => self.clean_up(observed, clean_up).await,
            Plan::Mirror(mirrored) => self.mirror(mirrored).await,
        };
        Outcome { error: done.err() }
    }

    /// Upstream: `deleteMirroredSlices` and `deleteEndpoints`, `pkg/controller/endpointslicemirroring/reconciler.go`.
    async fn clean_up(&self, observed: &Observed, CleanUp { why: _, delete }: CleanUp) -> anyhow::Result<()> {
        let key = &observed.key;
        self.metrics.forget(key);
        self.tracker.lock().forget(key);
        let endpoints = observed.endpoints.as_ref();
        let control = endpoints.map(|endpoints| self.control.for_key(key, endpoints.metadata.uid));
        let control = control.unwrap_or_else(|| self.control.for_name(key));
        let (mut errors, all) = (Vec::new(), delete.len());
        for deletion in &delete {
            errors.extend(self.delete(control, key, deletion).await.err().map(anyhow::Error::from));
        }
        let failed = errors.len();
        aggregate(errors)
            .with_context(|| format!("error(s) deleting {failed}/{all} EndpointSlices for {key} Endpoints, including"))
    }

    /// Upstream: `reconcile` and `finalize`, `reconciler.go`.
    async fn mirror(&self, mirrored: Mirrored) -> anyhow::Result<()> {
        self.metrics.decided(&mirrored);
        let Mirrored {
            endpoints,
            create,
            update,
            delete,
            withheld: _,
            notices,
            changes: _,
            skipped: _,
            invalid: _,
            sizes: _,
        } = mirrored;
        for Notice { reason, message } in notices {
            self.recorder.event(&endpoints.reference(), EventType::Warning, reason, message);
        }
        let key = &endpoints.metadata.key;
        let of_endpoints = |what: &str| format!("failed to {what} EndpointSlice for Endpoints {key}");
        for creation in create {
            match self.create(&endpoints, creation).await {
                Ok(()) => {}
                // Nothing can be created there ever again.
                Err(error) if error.is_namespace_terminating() => return Ok(()),
                Err(error) => return Err(error).with_context(|| of_endpoints("create")),
            }
        }
        for update in update {
            let what = format!("update {}", update.key.name());
            self.update(&endpoints, update).await.with_context(|| of_endpoints(&what))?;
        }
        for deletion in delete {
            let what = format!("delete {}", deletion.key.name());
            let deleted = self.delete(self.control_of(&endpoints), key, &deletion).await;
            deleted.with_context(|| of_endpoints(&what))?;
        }
        Ok(())
    }

    fn control_of<'a>(&'a self, endpoints: &'a Endpoints) -> KeyControl<'a> {
        self.control.for_key(&endpoints.metadata.key, endpoints.metadata.uid)
    }

    async fn create(&self, of: &Endpoints, creation: Creation) -> Result<(), ApiError> {
        let Creation { address_type, labels, annotations, ports, endpoints } = creation;
        let (owner, namespace) = (of.owner(), of.metadata.namespace());
        let body = json(&Body {
            api_version: ENDPOINT_SLICES.api_version(),
            kind: &ENDPOINT_SLICES.kind,
            metadata: BodyMetadata {
                generate_name: pod_name_prefix(of.metadata.name()),
                namespace,
                labels,
                annotations,
                owner_references: [owner.controller_ref()],
            },
            address_type,
            ports: &ports,
            endpoints: &endpoints,
        });
        let created = self.control_of(of).create(&ENDPOINT_SLICES, namespace, body).await;
        self.note(of, operations::CREATE, created)
    }

    async fn update(&self, of: &Endpoints, update: Update) -> Result<(), ApiError> {
        let Update { key, uid, resource_version, labels, annotations, is_of_another, ports, endpoints, changes: _ } =
            update;
        let preconditions = Preconditions { uid, resource_version: Some(resource_version) };
        let owner = of.owner();
        let patch = Patch::merge(&PatchBody {
            metadata: PatchMetadata {
                labels,
                annotations,
                owner_references: is_of_another.then(|| [owner.controller_ref()]),
            },
            ports: ports.as_deref(),
            endpoints: endpoints.as_deref(),
        });
        let updated = self.control_of(of).patch(&ENDPOINT_SLICES, &key, preconditions, patch).await;
        self.note(of, operations::UPDATE, updated)
    }

    async fn delete(&self, control: KeyControl<'_>, of: &Key, deletion: &Deletion) -> Result<(), ApiError> {
        let Deletion { key, uid, why: _ } = deletion;
        match control.delete(&ENDPOINT_SLICES, key, &DeleteOptions::of(*uid)).await {
            Ok(()) => {
                // Where the event has come before the answer, nothing is to be expected any more.
                if self.endpoint_slices.get(key).is_some_and(|slice| slice.metadata.uid == *uid) {
                    self.tracker.lock().deleted(of, *uid);
                }
                self.metrics.wrote(operations::DELETE);
                Ok(())
            }
            // Not a conflict: if a webhook has refused in these words, the slice is still there.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn note(
        &self,
        of: &Endpoints,
        operation: &'static str,
        outcome: Result<Written, ApiError>,
    ) -> Result<(), ApiError> {
        let written = outcome?.metadata;
        self.tracker.lock().wrote(&of.metadata.key, written.uid, written.generation);
        self.metrics.wrote(operation);
        Ok(())
    }
}

/// A new slice.
///
/// Upstream: `newEndpointSlice`, `pkg/controller/endpointslicemirroring/utils.go`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: BodyMetadata<'a>,
    address_type: AddressType,
    ports: &'a [EndpointPort],
    endpoints: &'a [Endpoint],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodyMetadata<'a> {
    generate_name: String,
    namespace: &'a str,
    labels: Labels,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    annotations: Labels,
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<Text, Option<Text>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<Text, Option<Text>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<[OwnerReference<'a>; 1]>,
}
