//! Executes a plan: writes slices and records events.

use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::{Key, Kind};
use shared::controllers::endpoints::slice_writer::{SliceWriter, Task};
use shared::working::control::aggregate;
use shared::working::events::PlannedEvent;

use crate::memory::Memory;
use crate::metrics::{EndpointSliceMetrics, results};
use crate::objects::{EndpointSlice, Service, annotations, reasons};
use crate::observe::Observed;
use crate::plan::{Family, Plan, Skipped, Slices, Writes};

pub(crate) struct Writer {
    pub(crate) slices: SliceWriter<EndpointSlice>,
    pub(crate) metrics: EndpointSliceMetrics,
    pub(crate) memory: Arc<Memory>,
}

impl Writer {
    /// Execute the plan. A pod that is left out is named in an event, and is not an error.
    ///
    /// Upstream: `Reconcile`, `staging/src/k8s.io/endpointslice/reconciler.go`.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let (service, missing) = (&observed.service, plan.missing_nodes());
        let is_whole = missing.is_empty();
        self.memory.await_nodes(&service.metadata.key, missing);
        let applied = match plan {
            Plan::Ignore(_) => {
                self.memory.slices.forget(&service.metadata.key);
                Ok(())
            }
            Plan::Write(slices) => {
                self.memory.services.remember(&service.metadata.key, &observed.state);
                self.write_all(service, slices).await
            }
        };
        self.metrics.synced(if is_whole && applied.is_ok() { results::SUCCESS } else { results::ERROR });
        applied
    }

    pub(crate) fn forget(&self, service: &Key) {
        self.memory.forget(service);
        self.metrics.forget(service);
        self.slices.ctx.forget(service, None);
        self.metrics.synced(results::SUCCESS);
    }

    async fn write_all(&self, service: &Service, slices: Slices) -> anyhow::Result<()> {
        self.metrics.decided(service, &slices);
        let Slices { families, unsupported, pods: _, hints, trigger } = slices;
        self.memory.remember_hints(&service.metadata.key, hints);
        let trigger = trigger.map(|time| Text::new(&time.to_string()));
        let task = Task { owner: service.owner(), stamps: [(Text::new(annotations::TRIGGER_TIME), trigger)].into() };
        let control = self.slices.ctx.for_key(&service.metadata.key, service.metadata.uid);
        let mut report = Report::default();
        for family in families {
            let Family { address_type: _, writes, skipped, events, added: _, removed: _, sizes: _ } = family;
            report.messages.extend(skipped.iter().map(|skipped| not_found(service, skipped)));
            report.note(self.write(service, &task, &writes).await);
            for event in events {
                self.slices.ctx.event(event);
            }
        }
        for deletion in &unsupported {
            let verb = || format!("error deleting {} EndpointSlice", deletion.key.name());
            let deleted = self.slices.delete(control, &service.metadata.key, deletion).await;
            report.note(deleted.with_context(|| of_service(&verb(), service)));
        }
        self.finish(service, report)
    }

    async fn write(&self, service: &Service, task: &Task, writes: &Writes) -> anyhow::Result<()> {
        if self.slices.write(task, writes).await? {
            self.metrics.finalized(service, writes.count());
        }
        Ok(())
    }

    /// Record the failures as one event, and give them as one error.
    ///
    /// Upstream: `syncService`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    fn finish(&self, service: &Service, Report { messages, errors }: Report) -> anyhow::Result<()> {
        if !messages.is_empty() {
            let message = failed_to_update(service, messages);
            self.slices.ctx.event(PlannedEvent::warning(service.reference(), reasons::FAILED_TO_UPDATE, message));
        }
        aggregate(errors)
    }
}

#[derive(Default)]
struct Report {
    /// The texts for the event, including pods that are left out.
    messages: Vec<String>,
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

/// Each error once, with brackets around several.
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
