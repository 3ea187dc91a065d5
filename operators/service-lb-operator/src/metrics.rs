//! Upstream's own metrics of this controller, under upstream's names.
//!
//! Left out: `service_controller_nodesync_latency_seconds`, the time of one pass over all Services, which is no unit of
//! work here.
//!
//! Upstream: `k8s.io/cloud-provider/controllers/service/metrics.go`.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::process::metrics::Metrics;

const SYNCS: &str = "service_controller_loadbalancer_sync";
const ERRORS: &str = "service_controller_nodesync_error";
const LATENCY: &str = "service_controller_update_loadbalancer_host_latency_seconds";

#[derive(Clone)]
pub struct ServiceMetrics {
    syncs: Counter,
    errors: Counter,
    latency: Histogram,
}

impl ServiceMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let latency = Histogram::new(exponential_buckets(1.0, 2.0, 15));
        let own = Self { syncs: Counter::default(), errors: Counter::default(), latency };
        let Self { syncs, errors, latency } = own.clone();
        metrics.register(SYNCS, "Counts the updates of load balancers after changes of nodes", syncs);
        metrics.register(ERRORS, "Counts the updates of load balancers after changes of nodes that failed", errors);
        metrics.register(LATENCY, "The time that the update of a load balancer's nodes took", latency);
        own
    }

    /// Notes an update of a load balancer's nodes.
    pub fn updated(&self, took: Duration, has_failed: bool) {
        self.syncs.inc();
        self.latency.observe(took.as_secs_f64());
        if has_failed {
            self.errors.inc();
        }
    }
}
