//! The counts of the nodes that a DaemonSet is for, and of its pods there.
//!
//! Upstream: `updateDaemonSetStatus`, `pkg/controller/daemon/daemon_controller.go`.

use jiff::Timestamp;

use super::places::Places;
use super::reasons::Numbers;
use crate::observe::Observed;

/// The counts of nodes. Of several pods of a node the first one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub desired: i32,
    pub current: i32,
    pub ready: i32,
    pub available: i32,
    /// Of them, those with a pod of the current template.
    pub updated: i32,
    /// Nodes that have a pod and should not.
    pub misscheduled: i32,
}

impl Counts {
    /// Counts the observed pods; `hash` is that of the revision of the current template.
    pub fn of(observed: &Observed, places: &Places<'_>, hash: &str, now: Timestamp) -> Self {
        let set = &*observed.set;
        let mut counts = Self::default();
        let count = |number: &mut i32, counts: bool| *number = number.saturating_add(i32::from(counts));
        for place in places.iter().filter(|place| place.node.is_some()) {
            let first = place.pods.first();
            if !place.runs() {
                count(&mut counts.misscheduled, first.is_some());
                continue;
            }
            count(&mut counts.desired, true);
            if let Some(pod) = first {
                count(&mut counts.current, true);
                count(&mut counts.ready, pod.readiness.is_ready());
                count(&mut counts.available, pod.readiness.is_available(set.spec.min_ready_seconds, now));
                count(&mut counts.updated, pod.is_updated(hash, set.template_generation));
            }
        }
        counts
    }

    pub(super) fn numbers(self) -> Numbers {
        let Self { desired, current: _, ready: _, available, updated, misscheduled } = self;
        Numbers { desired, available, updated, misscheduled }
    }
}
