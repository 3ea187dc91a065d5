//! The numbers of a budget.

use std::collections::BTreeMap;

use shared::api::time::Time;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub expected_pods: i32,
    /// The start of each running eviction, by pod name.
    pub disrupted_pods: BTreeMap<Box<str>, Time>,
    /// The number of pods without a controller, where the controllers' scales count.
    pub unmanaged: usize,
}

impl Counts {
    /// The number of pods that may be evicted. It is zero while no pods are expected, because the first pods may start
    /// before the next sync.
    ///
    /// Upstream: `updatePdbStatus`, `pkg/controller/disruption/disruption.go`.
    pub fn disruptions_allowed(&self) -> i32 {
        if self.expected_pods <= 0 { 0 } else { self.current_healthy.saturating_sub(self.desired_healthy).max(0) }
    }
}
