//! Metrics of the controllers that write EndpointSlices.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/metrics`, `pkg/controller/endpointslicemirroring/metrics`.

use prometheus_client::metrics::family::Family;

use crate::process::metrics::{BareCounter, Metrics};

pub mod operations {
    pub const CREATE: &str = "create";
    pub const UPDATE: &str = "update";
    pub const DELETE: &str = "delete";
}

/// The number of writes of slices by operation; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SliceChanges(Family<[(&'static str, &'static str); 1], BareCounter>);

impl SliceChanges {
    pub fn register(metrics: &Metrics, name: &'static str) -> Self {
        let own = Self::default();
        metrics.register(name, "Number of EndpointSlice changes", own.0.clone());
        own
    }

    pub fn wrote(&self, operation: &'static str) {
        self.0.get_or_create(&[("operation", operation)]).inc();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub endpoints: usize,
    pub slices: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub endpoints: usize,
    pub slices: usize,
    /// The number of slices if each group had as few as possible.
    pub desired_slices: usize,
}

impl Totals {
    /// The totals of groups whose slices have at most `max` endpoints.
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

pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
