//! Upstream's metrics of this controller, under upstream's names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use shared::process::metrics::Metrics;

use crate::plan::Deletion;

const DELETIONS: &str = "pod_gc_collector_force_delete_pods";
const DELETIONS_HELP: &str = "Number of pods that are being forcefully deleted since the Pod GC Controller started.";
const ERRORS: &str = "pod_gc_collector_force_delete_pod_errors";
const ERRORS_HELP: &str =
    "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.";

type Labels = [(&'static str, String); 2];

/// The number of deletions, and of those that failed.
///
/// Upstream: `DeletingPodsTotal` and `DeletingPodsErrorTotal`, `pkg/controller/podgc/metrics/metrics.go`.
#[derive(Clone)]
pub struct DeletionMetrics {
    deletions: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
}

impl DeletionMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let (deletions, errors) = (Family::default(), Family::default());
        metrics.register(DELETIONS, DELETIONS_HELP, deletions.clone());
        metrics.register(ERRORS, ERRORS_HELP, errors.clone());
        Self { deletions, errors }
    }

    pub fn observe(&self, deletion: &Deletion, succeeded: bool) {
        let namespace = deletion.pod.metadata.namespace().to_owned();
        let labels = [("namespace", namespace), ("reason", deletion.reason.as_str().to_owned())];
        self.deletions.get_or_create(&labels).inc();
        if !succeeded {
            self.errors.get_or_create(&labels).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::DeletionReason;

    #[test]
    fn names_and_labels_are_upstreams() {
        let registry = Metrics::new("pod-garbage-collector-operator");
        let metrics = DeletionMetrics::register(&registry);
        let pod = shared::testing::pod("a").build();
        for reason in [
            DeletionReason::Terminated,
            DeletionReason::OutOfService,
            DeletionReason::Orphaned,
            DeletionReason::Unscheduled,
        ] {
            let deletion = Deletion { pod: std::sync::Arc::clone(&pod), reason };
            metrics.observe(&deletion, true);
            metrics.observe(&deletion, false);
        }
        let text = registry.to_text();
        for reason in ["terminated", "out-of-service", "orphaned", "unscheduled"] {
            for (name, count) in [("pods", 2), ("pod_errors", 1)] {
                let line = format!(
                    "pod_gc_collector_force_delete_{name}_total{{namespace=\"default\",reason=\"{reason}\"}} {count}\n"
                );
                assert!(text.contains(&line), "{line}{text}");
            }
        }
    }
}
