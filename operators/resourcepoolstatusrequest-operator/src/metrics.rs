//! Upstream's own metrics of this controller, under upstream's names.
//!
//! Upstream: `pkg/controller/resourcepoolstatusrequest/metrics/metrics.go`.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::process::metrics::Metrics;

type Labels = [(&'static str, String); 1];

/// The metrics of this operator alone; cheap to clone.
#[derive(Clone)]
pub struct RequestMetrics {
    processed: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
    duration: Family<Labels, Histogram, fn() -> Histogram>,
}

impl RequestMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let own = Self {
            processed: Family::default(),
            errors: Family::default(),
            duration: Family::new_with_constructor(buckets),
        };
        metrics.register(
            "resourcepoolstatusrequest_controller_requests_processed",
            "Total number of ResourcePoolStatusRequests processed",
            own.processed.clone(),
        );
        metrics.register(
            "resourcepoolstatusrequest_controller_request_processing_errors",
            "Total number of errors encountered while processing ResourcePoolStatusRequests",
            own.errors.clone(),
        );
        metrics.register(
            "resourcepoolstatusrequest_controller_request_processing_duration_seconds",
            "Time taken to process a ResourcePoolStatusRequest",
            own.duration.clone(),
        );
        own
    }

    /// Notes a request of this driver whose answer was written, or could not be.
    pub fn processed(&self, driver: &str, took: Duration, written: &anyhow::Result<()>) {
        let labels = [("driver_name", driver.to_owned())];
        self.processed.get_or_create(&labels).inc();
        if written.is_err() {
            self.errors.get_or_create(&labels).inc();
        }
        self.duration.get_or_create(&labels).observe(took.as_secs_f64());
    }
}
