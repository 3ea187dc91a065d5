//! Executes a plan: has slices written, and tells people.
//!
//! Decides nothing. Left out: the writes themselves, which [`shared::controllers::endpoints::slice_writer`] does.

use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::{Key, Kind};
use shared::controllers::endpoints::slice_writer::{SliceWriter, Task};
use shared::runtime::control::aggregate;
use shared::runtime::events::{EventType, Recorder};

use crate::metrics::{EndpointSliceMetrics, results};
use crate::objects::{EndpointSlice, Service, annotations, reasons};
use crate::observe::Observed;
use crate::observe::tracker::Tracker;
use crate::plan::{Family, Plan, PlannedEvent, Skipped, Slices, Writes};

/// Writes slices.
pub(crate) struct Writer {
    pub(crate) slices: SliceWriter<EndpointSlice>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: EndpointSliceMetrics,
    pub(crate) tracker: Arc<Tracker>,
}

/// The result of executing a plan.
pub(crate) struct Outcome {
    /// The error.
    pub(crate) error: Option<anyhow::Error>,
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
                self.tracker.slices.forget(&service.metadata.key);
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
        self.slices.control.forget(service, None);
        self.metrics.synced(results::SUCCESS);
    }

    async fn write_all(&self, service: &Service, slices: Slices) -> anyhow::Result<()> {
        self.metrics.decided(service, &slices);
        let Slices { families, unsupported, pods: _, hints, trigger } = slices;
        self.tracker.remember_hints(&service.metadata.key, hints);
        let trigger = trigger.map(|time| Text::new(&time.to_string()));
        let task = Task { owner: service.owner(), stamps: [(Text::new(annotations::TRIGGER_TIME), trigger)].into() };
        let control = self.slices.control.for_key(&service.metadata.key, service.metadata.uid);
        let mut report = Report::default();
        for family in families {
            let Family { address_type: _, writes, skipped, notices, added: _, removed: _, sizes: _ } = family;
            report.messages.extend(skipped.iter().map(|skipped| not_found(service, skipped)));
            report.note(self.write(service, &task, &writes).await);
            for PlannedEvent { kind, reason, message } in notices {
                self.recorder.event(&service.reference(), kind, reason, message);
            }
        }
        for deletion in &unsupported {
            let verb = || format!("error deleting {} EndpointSlice", deletion.key.name());
            let deleted = self.slices.delete(control, &service.metadata.key, deletion).await;
            report.note(deleted.with_context(|| of_service(&verb(), service)));
        }
        self.tell(service, report)
    }

    async fn write(&self, service: &Service, task: &Task, writes: &Writes) -> anyhow::Result<()> {
        if self.slices.write(task, writes).await? {
            self.metrics.finalized(service, writes.count());
        }
        Ok(())
    }

    /// Upstream: `syncService`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    fn tell(&self, service: &Service, Report { messages, errors }: Report) -> anyhow::Result<()> {
        if !messages.is_empty() {
            let message = failed_to_update(service, messages);
            self.recorder.event(&service.reference(), EventType::Warning, reasons::FAILED_TO_UPDATE, message);
        }
        aggregate(errors)
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
