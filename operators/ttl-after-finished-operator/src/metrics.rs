//! Upstream's metric of this controller.

use jiff::Timestamp;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::time::Time;

/// The time between the expiry of a Job and its deletion.
///
/// Upstream: `JobDeletionDurationSeconds`, `pkg/controller/ttlafterfinished/metrics/metrics.go`.
#[derive(Clone, Debug)]
pub(crate) struct DeletionDelay(Histogram);

impl DeletionDelay {
    pub(crate) const NAME: &str = "ttl_after_finished_controller_job_deletion_duration_seconds";
    pub(crate) const HELP: &str = "The time it took to delete the job since it became eligible for deletion";

    pub(crate) fn new() -> Self {
        // Starts at 100 ms, doubles 14 times.
        Self(Histogram::new(exponential_buckets(0.1, 2.0, 14)))
    }

    pub(crate) fn histogram(&self) -> Histogram {
        self.0.clone()
    }

    pub(crate) fn observe(&self, expired: Time, deleted: Timestamp) {
        self.0.observe(deleted.duration_since(expired.timestamp()).as_secs_f64());
    }
}
