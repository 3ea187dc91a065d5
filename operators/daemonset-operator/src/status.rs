//! The status of a DaemonSet: the nodes that it is for, and how the pods there fare.
//!
//! Left out: writing it, and the collisions of names, which are counted when they happen.
//!
//! Upstream: `updateDaemonSetStatus` and `storeDaemonSetStatus`, `pkg/controller/daemon/daemon_controller.go`.

use jiff::Timestamp;
use shared::api::time::Time;

use crate::objects::DaemonSetStatus;
use crate::observe::Observed;
use crate::plan::counts::Counts;
use crate::plan::places::Places;

/// The purpose of the timer while a ready pod is not available yet.
pub const MIN_READY: &str = "minReadySeconds of a pod";

/// The status after a sync; none if it is the one that was written before. Pods count as they were observed. A sync
/// that only waited has not acted on the generation that it saw.
pub fn next_status(observed: &Observed, hash: &str, now: Timestamp) -> Option<DaemonSetStatus> {
    let (stored, generation) = (&observed.set.status, observed.set.metadata.generation);
    let Counts { desired, current, ready, available, updated, misscheduled } = counts(observed, hash, now);
    let is_raised = observed.outstanding.is_none() && stored.observed_generation < generation;
    let observed_generation = if is_raised { generation } else { stored.observed_generation };
    let next = DaemonSetStatus {
        desired_number_scheduled: desired,
        current_number_scheduled: current,
        number_ready: ready,
        number_available: available,
        number_unavailable: desired.saturating_sub(available),
        updated_number_scheduled: updated,
        number_misscheduled: misscheduled,
        observed_generation,
        collision_count: stored.collision_count,
    };
    (next != *stored).then_some(next)
}

fn counts(observed: &Observed, hash: &str, now: Timestamp) -> Counts {
    Counts::of(observed, &Places::of(observed), hash, now)
}

/// Whether a status tells of nothing but counts in between: neither that a pod is available on each node, nor of
/// another spec.
pub fn is_in_between(observed: &Observed, next: &DaemonSetStatus) -> bool {
    next.number_available != next.desired_number_scheduled
        && next.observed_generation == observed.set.status.observed_generation
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
        let Counts { ready, available, .. } = counts(observed, hash, now);
        let is_behind = ready != available;
        is_behind.then(|| Time::from_second(now.as_second().saturating_add(min_ready_seconds.into())))
    })
}
