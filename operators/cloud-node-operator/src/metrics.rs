//! Upstream's metrics of this controller, under upstream's names.

use jiff::Timestamp;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::time::Time;
use shared::process::metrics::Metrics;

const TAINT_REMOVAL: &str = "node_controller_cloud_provider_taint_removal_delay_seconds";
const TAINT_REMOVAL_HELP: &str = "Number of seconds after node creation when NodeController removed the \
                                  cloud-provider taint of a single node.";
const INITIAL_SYNC: &str = "node_controller_initial_node_sync_delay_seconds";
const INITIAL_SYNC_HELP: &str = "Number of seconds after node creation when NodeController finished the initial \
                                 synchronization of a single node.";

/// Upstream: `removeCloudProviderTaintDelay` and `initialNodeSyncDelay`,
/// `staging/src/k8s.io/cloud-provider/controllers/node/metrics.go`.
#[derive(Clone)]
pub struct NodeMetrics {
    taint_removal: Histogram,
    initial_sync: Histogram,
}

impl NodeMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let delays = || Histogram::new(exponential_buckets(1.0, 4.0, 6));
        let own = Self { taint_removal: delays(), initial_sync: delays() };
        metrics.register(TAINT_REMOVAL, TAINT_REMOVAL_HELP, own.taint_removal.clone());
        metrics.register(INITIAL_SYNC, INITIAL_SYNC_HELP, own.initial_sync.clone());
        own
    }

    /// The last write of an initialization removes the taint, so both times are one.
    pub fn initialized(&self, created: Option<Time>, now: Timestamp) {
        let Some(created) = created else { return };
        let delay = now.duration_since(created.timestamp()).as_secs_f64();
        self.taint_removal.observe(delay);
        self.initial_sync.observe(delay);
    }
}

#[cfg(test)]
mod tests {
    use shared::testing::{NOW, ago};

    use super::*;

    #[test]
    fn names_and_buckets_are_upstreams() {
        let registry = Metrics::new("cloud-node-operator");
        let metrics = NodeMetrics::register(&registry);
        metrics.initialized(Some(Time::of(ago(5))), NOW);
        metrics.initialized(None, NOW);
        let text = registry.to_text();
        for name in [TAINT_REMOVAL, INITIAL_SYNC] {
            for line in [
                format!("{name}_count 1\n"),
                format!("{name}_bucket{{le=\"4.0\"}} 0\n"),
                format!("{name}_bucket{{le=\"16.0\"}} 1\n"),
                format!("{name}_bucket{{le=\"1024.0\"}} 1\n"),
            ] {
                assert!(text.contains(&line), "{line}{text}");
            }
        }
    }
}
