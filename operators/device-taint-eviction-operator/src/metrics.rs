//! Upstream's metrics of this controller, under upstream's names.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use shared::process::metrics::Metrics;

const DELETIONS: &str = "device_taint_eviction_controller_pod_deletions";
const DELETIONS_HELP: &str = "Total number of Pods deleted by DeviceTaintEvictionController since its start.";
const DELAY: &str = "device_taint_eviction_controller_pod_deletion_duration_seconds";
const DELAY_HELP: &str = "Latency, in seconds, between the time when a device taint effect has been activated and a \
                          Pod's deletion via DeviceTaintEvictionController.";
/// 5 ms to 4 minutes.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

/// The number of deleted pods, and the delay of each deletion.
///
/// Upstream: `PodDeletionsTotal` and `PodDeletionsLatency`, `pkg/controller/devicetainteviction/metrics/metrics.go`.
#[derive(Clone)]
pub struct DeletionMetrics {
    deletions: Counter,
    delay: Histogram,
}

impl DeletionMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let (deletions, delay) = (Counter::default(), Histogram::new(BUCKETS));
        metrics.register(DELETIONS, DELETIONS_HELP, deletions.clone());
        metrics.register(DELAY, DELAY_HELP, delay.clone());
        Self { deletions, delay }
    }

    pub fn observe(&self, due: Timestamp, now: Timestamp) {
        self.deletions.inc();
        self.delay.observe(now.duration_since(due).as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use shared::testing::{NOW, ago};

    use super::*;

    #[test]
    fn names_and_buckets_are_upstreams() {
        let registry = Metrics::new("device-taint-eviction-operator");
        let metrics = DeletionMetrics::register(&registry);
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
