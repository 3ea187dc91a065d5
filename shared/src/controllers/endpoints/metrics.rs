//! Metrics of those who write EndpointSlices: counters under upstream's very names, and how large groups of slices are.
//!
//! Left out: the names themselves, which each of them has its own of.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/metrics`, `pkg/controller/endpointslicemirroring/metrics`.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::runtime::metrics::Metrics;

/// The operations that are counted.
pub mod operations {
    /// A slice was created.
    pub const CREATE: &str = "create";
    /// A slice was changed.
    pub const UPDATE: &str = "update";
    /// A slice was deleted.
    pub const DELETE: &str = "delete";
}

/// A counter whose name has no `_total`, as upstream's; so it is of no known type.
#[derive(Clone, Debug, Default)]
pub struct BareCounter(Counter);

impl BareCounter {
    /// Counts one more.
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

/// How many slices were written, by operation; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SliceChanges(Family<[(&'static str, &'static str); 1], BareCounter>);

impl SliceChanges {
    /// Registers them under this name.
    pub fn register(metrics: &Metrics, name: &'static str) -> Self {
        let own = Self::default();
        metrics.register(name, "Number of EndpointSlice changes", own.0.clone());
        own
    }

    /// A slice was written.
    pub fn wrote(&self, operation: &'static str) {
        self.0.get_or_create(&[("operation", operation)]).inc();
    }
}

/// How large a group of slices is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// How many endpoints there are.
    pub endpoints: usize,
    /// In how many slices.
    pub slices: usize,
}

/// How large several groups are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many endpoints there are.
    pub endpoints: usize,
    /// In how many slices.
    pub slices: usize,
    /// In how many they would be if each group had as few as it can.
    pub desired_slices: usize,
}

impl Totals {
    /// Of groups whose slices have at most `max` endpoints.
    ///
    /// Upstream: `totals`, `desiredAndActualSlices` and `numDesiredSlices`, `metrics/cache.go`.
    pub fn of(sizes: &[Size], max: usize) -> Self {
        let mut totals = Self::default();
        for Size { endpoints, slices } in sizes {
            totals.endpoints += endpoints;
            totals.slices += slices;
            totals.desired_slices += endpoints.div_ceil(max);
        }
        totals
    }
}

/// Counts of endpoints: a metric is a float.
pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
