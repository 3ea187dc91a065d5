//! Upstream's metrics of this controller, under upstream's names.

use shared::controllers::deletion_metrics::DeletionMetrics;
use shared::process::metrics::Metrics;

const DELETIONS: &str = "device_taint_eviction_controller_pod_deletions";
const DELETIONS_HELP: &str = "Total number of Pods deleted by DeviceTaintEvictionController since its start.";
const DELAY: &str = "device_taint_eviction_controller_pod_deletion_duration_seconds";
const DELAY_HELP: &str = "Latency, in seconds, between the time when a device taint effect has been activated and a \
                          Pod's deletion via DeviceTaintEvictionController.";

/// Upstream: `PodDeletionsTotal` and `PodDeletionsLatency`, `pkg/controller/devicetainteviction/metrics/metrics.go`.
pub fn register(metrics: &Metrics) -> DeletionMetrics {
    DeletionMetrics::register(metrics, (DELETIONS, DELETIONS_HELP), (DELAY, DELAY_HELP))
}

#[cfg(test)]
mod tests {
    use shared::testing::{NOW, ago};

    use super::*;

    #[test]
    fn names_and_buckets_are_upstreams() {
        let registry = Metrics::new("device-taint-eviction-operator");
        let metrics = register(&registry);
        metrics.observe(ago(2), NOW);
        let text = registry.to_text();
        for line in [
            "device_taint_eviction_controller_pod_deletions_total 1\n",
            "device_taint_eviction_controller_pod_deletion_duration_seconds_sum 2.0\n",
            "device_taint_eviction_controller_pod_deletion_duration_seconds_bucket{le=\"1.0\"} 0\n",
            "device_taint_eviction_controller_pod_deletion_duration_seconds_bucket{le=\"2.5\"} 1\n",
            "device_taint_eviction_controller_pod_deletion_duration_seconds_bucket{le=\"240.0\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
