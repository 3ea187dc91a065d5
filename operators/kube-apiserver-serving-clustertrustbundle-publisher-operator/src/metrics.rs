//! Upstream's own metrics of this controller, under upstream's names.

use shared::controllers::root_ca::metrics::Named;
use shared::process::metrics::Metrics;

pub use shared::controllers::root_ca::metrics::{SyncMetrics, code};

const SYNCS: Named = Named {
    name: "clustertrustbundle_publisher_sync",
    help: "Number of syncs that occurred in cluster trust bundle publisher.",
};
const SYNC_DURATION: Named = Named {
    name: "clustertrustbundle_publisher_sync_duration_seconds",
    help: "The time it took to sync a cluster trust bundle.",
};

pub fn register(metrics: &Metrics) -> SyncMetrics {
    SyncMetrics::register(metrics, SYNCS, SYNC_DURATION)
}
