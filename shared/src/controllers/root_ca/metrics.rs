//! Metrics of the syncs that publish the CA. Names and help texts are each controller's own.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::process::metrics::Metrics;
use crate::transport::api_error::ApiError;

/// Upstream's name and help text of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name, without a counter's `_total`.
    pub name: &'static str,
    pub help: &'static str,
}

type Code = [(&'static str, String); 1];

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(0.001, 2.0, 15))
    }
}

/// The number of syncs and their seconds, by result.
///
/// Upstream: `syncCounter` and `syncLatency`, `pkg/controller/certificates/rootcacertpublisher/metrics.go` and
/// `pkg/controller/certificates/clustertrustbundlepublisher/metrics.go`.
#[derive(Clone)]
pub struct SyncMetrics {
    syncs: Family<Code, Counter>,
    durations: Family<Code, Histogram, Buckets>,
}

impl SyncMetrics {
    pub fn register(metrics: &Metrics, syncs: Named, durations: Named) -> Self {
        let registered = Self { syncs: Family::default(), durations: Family::new_with_constructor(Buckets) };
        metrics.register(syncs.name, syncs.help, registered.syncs.clone());
        metrics.register(durations.name, durations.help, registered.durations.clone());
        registered
    }

    pub fn observe(&self, outcome: &anyhow::Result<()>, took: Duration) {
        let code = [("code", code(outcome).to_string())];
        self.durations.get_or_create(&code).observe(took.as_secs_f64());
        self.syncs.get_or_create(&code).inc();
    }
}

/// The result of a sync as an HTTP status code. Upstream: `recordMetrics`, in the same files.
pub fn code(outcome: &anyhow::Result<()>) -> u16 {
    match outcome {
        Ok(()) => 200,
        Err(error) => {
            let answered = error.chain().find_map(|cause| cause.downcast_ref::<ApiError>()?.code());
            answered.filter(|code| *code != 0).unwrap_or(500)
        }
    }
}
