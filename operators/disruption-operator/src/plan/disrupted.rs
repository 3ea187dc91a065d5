//! Running and overdue evictions.
//!
//! The apiserver notes an eviction in the budget's status before it deletes the pod. The pod counts as gone until its
//! deletion is observed. If that does not happen in time, it counts as healthy again.
//!
//! Upstream: `buildDisruptedPodMap`, `pkg/controller/disruption/disruption.go`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::time::Time;

use crate::objects::Pod;
use crate::observe::Observed;

/// The timeout of an eviction, until its pod is being deleted.
///
/// Upstream: `DeletionTimeout`, `pkg/controller/disruption/disruption.go`.
pub const DELETION_TIMEOUT_SECONDS: i64 = 120;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disrupted {
    /// The start of each running eviction, by pod name.
    pub running: BTreeMap<Box<str>, Time>,
    /// The pods whose evictions timed out.
    pub overdue: Vec<Arc<Pod>>,
    /// The time until the first running eviction times out.
    pub recheck: Option<Duration>,
}

/// Sort the evictions of existing pods by their timeout.
pub fn disrupted(observed: &Observed, now: Timestamp) -> Disrupted {
    let mut found = Disrupted::default();
    for pod in observed.pods.iter().filter(|pod| !pod.metadata.is_being_deleted()) {
        let name = pod.metadata.name();
        let Some(began) = observed.budget.status.disrupted_pods.get(name) else { continue };
        match began.remaining(DELETION_TIMEOUT_SECONDS, now) {
            Some(left) => {
                found.recheck = Some(found.recheck.map_or(left, |first| first.min(left)));
                found.running.insert(name.into(), *began);
            }
            None => found.overdue.push(Arc::clone(pod)),
        }
    }
    found
}
