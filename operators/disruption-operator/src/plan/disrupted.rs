//! Which evictions go on, and which have taken too long.
//!
//! The apiserver notes an eviction in the budget's status, and then deletes the pod. Until that is seen, the pod counts
//! as gone; if it never is, the pod counts again. Left out: evictions of pods that are being deleted or are gone, which
//! are done.
//!
//! Upstream: `buildDisruptedPodMap`, `pkg/controller/disruption/disruption.go`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::time::Time;

use crate::objects::Pod;
use crate::observe::Observed;

/// How many seconds an eviction may take until its pod is being deleted.
///
/// Upstream: `DeletionTimeout`, `pkg/controller/disruption/disruption.go`.
pub const DELETION_TIMEOUT_SECONDS: i64 = 120;

/// The evictions of a budget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disrupted {
    /// Those that go on, and when they began.
    pub going: BTreeMap<Box<str>, Time>,
    /// The pods that were to be deleted and are not.
    pub overdue: Vec<Arc<Pod>>,
    /// When the first of those that go on will have taken too long.
    pub recheck: Option<Duration>,
}

/// The evictions that the status has of pods that are there.
pub fn disrupted(observed: &Observed, now: Timestamp) -> Disrupted {
    let mut found = Disrupted::default();
    for pod in observed.pods.iter().filter(|pod| !pod.metadata.is_being_deleted()) {
        let name = pod.metadata.name();
        let Some(began) = observed.budget.status.disrupted_pods.get(name) else { continue };
        match began.remaining(DELETION_TIMEOUT_SECONDS, now) {
            Some(left) => {
                found.recheck = Some(found.recheck.map_or(left, |first| first.min(left)));
                found.going.insert(name.into(), *began);
            }
            None => found.overdue.push(Arc::clone(pod)),
        }
    }
    found
}
