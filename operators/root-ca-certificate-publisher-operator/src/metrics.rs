//! Upstream's own metrics of this controller, under upstream's names.

use shared::controllers::root_ca::metrics::Named;
use shared::process::metrics::Metrics;

pub use shared::controllers::root_ca::metrics::{SyncMetrics, code};

const SYNCS: Named = Named { name: "root_ca_cert_publisher_sync", help: HELP };
const SYNC_DURATION: Named = Named { name: "root_ca_cert_publisher_sync_duration_seconds", help: HELP };
// Upstream's text for both.
const HELP: &str = "Number of namespace syncs happened in root ca cert publisher.";

pub fn register(metrics: &Metrics) -> SyncMetrics {
    SyncMetrics::register(metrics, SYNCS, SYNC_DURATION)
}
