//! The status of a DaemonSet: the nodes that it is for, and how the pods there fare.
//!
//! Left out: writing it, and the collisions of names, which are counted when they happen.
//!
//! Upstream: `updateDaemonSetStatus` and `storeDaemonSetStatus`, `pkg/controller/daemon/daemon_controller.go`.

use jiff::Timestamp;
use shared::api::time::Time;

use crate::objects::DaemonSetStatus;
use crate::observe::Observed;
use crate::plan::places::Places;
use crate::plan::reasons::Numbers;

/// The purpose of the timer while a ready pod is not available yet.
pub const MIN_READY: &str = "minReadySeconds of a pod";

/// The status after a sync; none if it is the one that was written before. Pods count as they were observed. A sync
/// that only waited has not acted on the generation that it saw.
pub fn next_status(observed: &Observed, hash: &str, now: Timestamp) -> Option<DaemonSetStatus> {
    let (stored, generation) = (&observed.set.status, observed.set.metadata.generation);
    let counted = calculate_status(observed, &Places::of(observed), hash, now);
    let is_raised = observed.outstanding.is_none() && stored.observed_generation < generation;
    let observed_generation = if is_raised { generation } else { stored.observed_generation };
    let next = DaemonSetStatus { observed_generation, ..counted };
    (next != *stored).then_some(next)
}

/// Whether a status tells of nothing but counts in between: neither that a pod is available on each node, nor of
/// another spec.
pub fn is_in_between(observed: &Observed, next: &DaemonSetStatus) -> bool {
    next.number_available != next.desired_number_scheduled
        && next.observed_generation == observed.set.status.observed_generation
}

/// The counts of the observed pods. Of several pods of a node the first one counts.
pub fn calculate_status(observed: &Observed, places: &Places<'_>, hash: &str, now: Timestamp) -> DaemonSetStatus {
    let (set, stored) = (&*observed.set, &observed.set.status);
    let mut next = DaemonSetStatus {
        observed_generation: stored.observed_generation,
        collision_count: stored.collision_count,
        ..DaemonSetStatus::default()
    };
    let count = |number: &mut i32, counts: bool| *number = number.saturating_add(i32::from(counts));
    for place in places.iter().filter(|place| place.node.is_some()) {
        let first = place.pods.first();
        if !place.runs() {
            count(&mut next.number_misscheduled, first.is_some());
            continue;
        }
        count(&mut next.desired_number_scheduled, true);
        if let Some(pod) = first {
            count(&mut next.current_number_scheduled, true);
            count(&mut next.number_ready, pod.readiness.is_ready());
            count(&mut next.number_available, pod.readiness.is_available(set.spec.min_ready_seconds, now));
            count(&mut next.updated_number_scheduled, pod.is_updated(hash, set.template_generation));
        }
    }
    next.number_unavailable = next.desired_number_scheduled.saturating_sub(next.number_available);
    next
}

/// How far it is, as a plan says it.
pub fn numbers(observed: &Observed, places: &Places<'_>, hash: &str, now: Timestamp) -> Numbers {
    let status = calculate_status(observed, places, hash, now);
    Numbers {
        desired: status.desired_number_scheduled,
        available: status.number_available,
        updated: status.updated_number_scheduled,
        misscheduled: status.number_misscheduled,
    }
}

/// When the next pod becomes available, and the status or the update with it; `now` is that of the status.
///
/// Upstream looks again after the whole of `minReadySeconds`.
pub fn next_check(observed: &Observed, hash: &str, now: Timestamp) -> Option<Time> {
    let min_ready_seconds = observed.set.spec.min_ready_seconds;
    if min_ready_seconds <= 0 {
        return None;
    }
    let stays = observed.pods.iter().filter(|pod| !pod.metadata.is_being_deleted());
    let next = stays.filter_map(|pod| pod.readiness.available_at(min_ready_seconds, now)).min();
    next.or_else(|| {
        // A pod that is ready but does not say since when becomes available at no known time.
        let status = calculate_status(observed, &Places::of(observed), hash, now);
        let is_behind = status.number_ready != status.number_available;
        is_behind.then(|| Time::from_second(now.as_second().saturating_add(min_ready_seconds.into())))
    })
}
