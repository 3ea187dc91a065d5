//! Upstream's own metric of this controller, under upstream's name.
//!
//! Left out: the metrics of every operator (queues, requests, leadership), which are [`shared::process::metrics`]'.
//!
//! Upstream: `k8s.io/cloud-provider/controllers/route/metrics.go`.

use prometheus_client::metrics::counter::Counter;
use shared::process::metrics::Metrics;

const SYNCS: &str = "route_controller_route_sync";
const SYNCS_HELP: &str = "A metric counting the amount of times routes have been synced with the cloud provider";

/// Counts rounds.
pub fn register(metrics: &Metrics) -> Counter {
    let syncs = Counter::default();
    metrics.register(SYNCS, SYNCS_HELP, syncs.clone());
    syncs
}
