//! Upstream's own metric of this controller, under upstream's name.
//!
//! Left out: what every operator shows (queues, requests, leadership), which is [`shared::runtime::metrics`]'.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use shared::runtime::metrics::Metrics;

const STALE_SYNC_SKIPS: &str = "daemonset_controller_stale_sync_skips";
const STALE_SYNC_SKIPS_HELP: &str = "Total number of DaemonSet syncs skipped due to a stale watch cache";

type GroupResource = [(&'static str, String); 2];

/// The metrics of this operator.
#[derive(Clone)]
pub struct DaemonSetMetrics {
    stale_sync_skips: Family<GroupResource, Counter>,
}

impl DaemonSetMetrics {
    /// Registers them with the process's metrics.
    ///
    /// Upstream: `Register`, `pkg/controller/daemon/metrics/metrics.go`.
    pub fn register(metrics: &Metrics) -> Self {
        let stale_sync_skips = Family::default();
        metrics.register(STALE_SYNC_SKIPS, STALE_SYNC_SKIPS_HELP, stale_sync_skips.clone());
        Self { stale_sync_skips }
    }

    /// Counts a sync that was put off; `resource` as upstream prints it, such as `daemonsets.apps`.
    pub fn observe_held(&self, resource: &str) {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let labels = [("group", group.to_owned()), ("resource", resource.to_owned())];
        self.stale_sync_skips.get_or_create(&labels).inc();
    }
}
