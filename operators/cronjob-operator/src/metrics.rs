//! Upstream's metric of this controller.

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::time::Time;

/// The time between when a Job is due and its creation.
///
/// Upstream: `CronJobCreationSkew`, `pkg/controller/cronjob/metrics/metrics.go`.
#[derive(Clone, Debug)]
pub(crate) struct CreationSkew(Histogram);

impl CreationSkew {
    pub(crate) const NAME: &str = "cronjob_controller_job_creation_skew_duration_seconds";
    pub(crate) const HELP: &str =
        "Time between when a cronjob is scheduled to be run, and when the corresponding job is created";

    pub(crate) fn new() -> Self {
        Self(Histogram::new(exponential_buckets(1.0, 2.0, 10)))
    }

    pub(crate) fn histogram(&self) -> Histogram {
        self.0.clone()
    }

    pub(crate) fn observe(&self, creation: Time, due: Time) {
        let skew = creation.timestamp().duration_since(due.timestamp());
        self.0.observe(skew.as_secs_f64());
    }
}
