//! Upstream's own metrics of this controller, under upstream's names.
//!
//! Left out: what every operator shows (queues, requests, leadership), which is [`shared::runtime::metrics`]'.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::runtime::api_error::ApiError;
use shared::runtime::metrics::Metrics;

const SYNCS: &str = "root_ca_cert_publisher_sync";
const SYNC_DURATION: &str = "root_ca_cert_publisher_sync_duration_seconds";
// Upstream has one text for both.
const HELP: &str = "Number of namespace syncs happened in root ca cert publisher.";

type Code = [(&'static str, String); 1];

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(0.001, 2.0, 15))
    }
}

/// How many syncs ended how, and how long they took.
///
/// Upstream: `syncCounter` and `syncLatency`, `pkg/controller/certificates/rootcacertpublisher/metrics.go`.
#[derive(Clone)]
pub struct SyncMetrics {
    syncs: Family<Code, Counter>,
    durations: Family<Code, Histogram, Buckets>,
}

impl SyncMetrics {
    /// Registers them with the process's metrics.
    pub fn register(metrics: &Metrics) -> Self {
        let (syncs, durations) = (Family::default(), Family::new_with_constructor(Buckets));
        metrics.register(SYNCS, HELP, syncs.clone());
        metrics.register(SYNC_DURATION, HELP, durations.clone());
        Self { syncs, durations }
    }

    /// Counts a sync.
    pub fn observe(&self, outcome: &anyhow::Result<()>, took: Duration) {
        let code = [("code", code(outcome).to_string())];
        self.durations.get_or_create(&code).observe(took.as_secs_f64());
        self.syncs.get_or_create(&code).inc();
    }
}

/// As HTTP would say how a sync ended. Upstream: `recordMetrics`.
pub fn code(outcome: &anyhow::Result<()>) -> u16 {
    match outcome {
        Ok(()) => 200,
        Err(error) => {
            let answered = error.chain().find_map(|cause| cause.downcast_ref::<ApiError>()?.code());
            answered.filter(|code| *code != 0).unwrap_or(500)
        }
    }
}
