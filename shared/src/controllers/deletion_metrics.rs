//! The metrics of a controller that deletes pods because of taints: how many pods it has deleted, and how late.
//!
//! Left out: their names, which are upstream's and differ by controller.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use crate::process::metrics::Metrics;

/// 5 ms to 4 minutes, as upstream.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

/// The name and the help of a metric.
pub type Name = (&'static str, &'static str);

/// The number of deleted pods, and the delay of each deletion.
#[derive(Clone)]
pub struct DeletionMetrics {
    deletions: Counter,
    delay: Histogram,
}

impl DeletionMetrics {
    pub fn register(metrics: &Metrics, (deletions_name, deletions_help): Name, (delay_name, delay_help): Name) -> Self {
        let (deletions, delay) = (Counter::default(), Histogram::new(BUCKETS));
        metrics.register(deletions_name, deletions_help, deletions.clone());
        metrics.register(delay_name, delay_help, delay.clone());
        Self { deletions, delay }
    }

    pub fn observe(&self, due: Timestamp, now: Timestamp) {
        self.deletions.inc();
        self.delay.observe(now.duration_since(due).as_secs_f64());
    }
}
