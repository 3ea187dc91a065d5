//! The status of a StatefulSet: how many pods it has, how they fare, and which revisions they are of.
//!
//! Left out: writing it.
//!
//! Upstream: `pkg/controller/statefulset/stateful_set_control.go`.

use jiff::Timestamp;
use shared::api::time::Time;

use crate::apply::Outcome;
use crate::objects::StatefulSetStatus;
use crate::objects::names::ordinal;
use crate::observe::Observed;
use crate::plan::pods::is_running_and_ready;
use crate::plan::revisions::Revisions;

/// The purpose of the timer while a ready pod is not available yet.
pub const MIN_READY: &str = "minReadySeconds of a pod";

/// The status after a sync; none if it is the one that was written before. Pods count as they were observed.
///
/// Upstream: `updateStatefulSet` and `updateStatefulSetStatus`.
pub fn next_status(
    observed: &Observed,
    revisions: &Revisions,
    outcome: &Outcome,
    now: Timestamp,
) -> Option<StatefulSetStatus> {
    let mut status = calculate_status(observed, revisions, now);
    status.current_replicas = status.current_replicas.saturating_sub(to_i32(outcome.outdated));
    complete_update(observed, &mut status);
    is_news(&observed.set.status, &status).then_some(status)
}

/// The counts of the observed pods.
///
/// Upstream: `updateStatus` and `computeReplicaStatus`.
pub fn calculate_status(observed: &Observed, revisions: &Revisions, now: Timestamp) -> StatefulSetStatus {
    let set = &*observed.set;
    let Revisions { current, update, collision_count } = revisions;
    // Once it is being deleted a pod counts whatever the number in its name.
    let is_deleted = set.metadata.is_being_deleted();
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        current_revision: current.clone(),
        update_revision: update.clone(),
        collision_count: Some(*collision_count),
        ..StatefulSetStatus::default()
    };
    let count = |number: &mut i32, counts: bool| *number = number.saturating_add(i32::from(counts));
    for pod in observed.pods.iter().filter(|pod| is_deleted || ordinal(pod) >= 0) {
        let (is_ready, stays) = (is_running_and_ready(pod), !pod.metadata.is_being_deleted());
        let revision = pod.revision();
        count(&mut status.replicas, true);
        count(&mut status.ready_replicas, is_ready);
        let is_available = is_ready && pod.readiness.is_available(set.spec.min_ready_seconds, now);
        count(&mut status.available_replicas, is_available);
        count(&mut status.current_replicas, stays && revision == &**current);
        count(&mut status.updated_replicas, stays && revision == &**update);
    }
    status
}

fn to_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Once all pods are updated and ready, the update revision is the current one. With `OnDelete` too, as upstream from
/// 1.37 on: otherwise `currentRevision` names a template that no pod has.
///
/// Upstream: `completeRollingUpdate`, `pkg/controller/statefulset/stateful_set_utils.go`.
fn complete_update(observed: &Observed, status: &mut StatefulSetStatus) {
    let replicas = observed.set.spec.replicas;
    let counts = [status.updated_replicas, status.ready_replicas, status.replicas];
    if counts == [replicas; 3] {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
}

/// Whether the next status says anything new. Collisions alone are no news.
///
/// Upstream: `inconsistentStatus`, `stateful_set_utils.go`.
fn is_news(stored: &StatefulSetStatus, next: &StatefulSetStatus) -> bool {
    let same = StatefulSetStatus {
        observed_generation: stored.observed_generation,
        collision_count: stored.collision_count,
        ..next.clone()
    };
    next.observed_generation > stored.observed_generation || same != *stored
}

/// Whether a status tells of nothing but counts in between: neither that all pods are there and available, nor of
/// another spec or revision.
pub fn is_in_between(observed: &Observed, next: &StatefulSetStatus) -> bool {
    let (stored, replicas) = (&observed.set.status, observed.set.spec.replicas);
    let told = |status: &StatefulSetStatus| {
        (status.observed_generation, status.current_revision.clone(), status.update_revision.clone())
    };
    let counts = [next.replicas, next.ready_replicas, next.available_replicas];
    told(stored) == told(next) && counts != [replicas; 3]
}

/// When the next pod becomes available, and the status with it; `now` is that of the status.
///
/// Upstream: `syncStatefulSet`, `pkg/controller/statefulset/stateful_set.go`, and `FindMinNextPodAvailabilityCheck`,
/// `pkg/controller/controller_utils.go`.
pub fn next_check(observed: &Observed, revisions: &Revisions, now: Timestamp) -> Option<Time> {
    let min_ready_seconds = observed.set.spec.min_ready_seconds;
    let status = calculate_status(observed, revisions, now);
    if min_ready_seconds <= 0 || status.ready_replicas == status.available_replicas {
        return None;
    }
    let next = observed.pods.iter().filter_map(|pod| pod.readiness.available_at(min_ready_seconds, now)).min();
    // A pod that is ready but does not say since when becomes available at no known time.
    let fallback = || Time::from_second(now.as_second().saturating_add(min_ready_seconds.into()));
    Some(next.unwrap_or_else(fallback))
}
