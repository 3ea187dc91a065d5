//! Counters under names that OpenMetrics has no counters of.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::{MetricType, TypedMetric};

/// A counter whose name has no `_total`, as upstream's. OpenMetrics requires that suffix, so its type is unknown.
#[derive(Clone, Debug, Default)]
pub struct BareCounter(Counter);

impl BareCounter {
    pub fn inc(&self) {
        self.0.inc();
    }
}

impl TypedMetric for BareCounter {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for BareCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
