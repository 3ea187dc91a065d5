//! The progress of a rollout: pauses, completion and the deadline.

use std::time::Duration;

use jiff::Timestamp;
use shared::api::condition::{self, Condition};
use shared::api::time::Time;

use crate::objects::{DeploymentSpec, DeploymentStatus, conditions, reasons};
use crate::observe::Observed;

/// The progress deadline in seconds, if there is one; the largest number means none.
///
/// Upstream: `HasProgressDeadline`, `pkg/controller/deployment/util/deployment_util.go`.
pub fn deadline(spec: &DeploymentSpec) -> Option<i32> {
    spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)
}

pub fn condition(status: &str, reason: &str, message: String, now: Timestamp) -> Condition {
    let now = Time::of(now);
    Condition::new(conditions::PROGRESSING, status, reason, message).transitioned_at(now).updated_at(now)
}

/// The condition for a pause or its end, so that the deadline does not run meanwhile. A rollout that has timed out stays
/// timed out.
///
/// Upstream: `checkPausedConditions`, `pkg/controller/deployment/sync.go`.
pub(super) fn pause_condition(observed: &Observed, now: Timestamp) -> Option<Condition> {
    let spec = observed.spec();
    deadline(spec)?;
    let current = condition::find(&observed.status.conditions, conditions::PROGRESSING);
    let reason = current.map_or("", |current| current.reason.as_str());
    if reason == reasons::PROGRESS_DEADLINE_EXCEEDED {
        return None;
    }
    let (reason, message) = match (spec.paused, reason == reasons::DEPLOYMENT_PAUSED) {
        (true, false) => (reasons::DEPLOYMENT_PAUSED, "Deployment is paused"),
        (false, true) => (reasons::DEPLOYMENT_RESUMED, "Deployment is resumed"),
        (true, true) | (false, false) => return None,
    };
    Some(condition(condition::UNKNOWN, reason, message.to_owned(), now))
}

/// Whether all pods are updated and available, and no old one is left.
///
/// Upstream: `DeploymentComplete`, `deployment_util.go`.
pub fn is_complete(observed: &Observed, status: &DeploymentStatus) -> bool {
    let wanted = observed.spec().replicas;
    status.updated_replicas == wanted
        && status.replicas == wanted
        && status.available_replicas == wanted
        && status.observed_generation >= observed.deployment.metadata.generation
}

/// The same by the status as it was written last: only then old ReplicaSets are of no use to the rollout.
pub(super) fn is_complete_as_written(observed: &Observed) -> bool {
    is_complete(observed, &observed.deployment.status)
}

/// Whether there is more of what is new or less of what is old than was written last.
///
/// Upstream: `DeploymentProgressing`, `deployment_util.go`.
pub fn is_progressing(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old_pods = |status: &DeploymentStatus| i64::from(status.replicas) - i64::from(status.updated_replicas);
    now.updated_replicas > before.updated_replicas
        || old_pods(now) < old_pods(before)
        || now.ready_replicas > before.ready_replicas
        || now.available_replicas > before.available_replicas
}

/// Whether nothing got on for longer than the deadline. What was complete before never times out: its next rollout has
/// only just begun.
///
/// Upstream: `DeploymentTimedOut`, `deployment_util.go`.
pub fn is_timed_out(spec: &DeploymentSpec, conditions: &[Condition], now: Timestamp) -> bool {
    let Some(current) = condition::find(conditions, conditions::PROGRESSING) else { return false };
    match (deadline(spec), current.reason.as_str()) {
        (None, _) | (_, reasons::NEW_REPLICA_SET_AVAILABLE) => false,
        (Some(_), reasons::PROGRESS_DEADLINE_EXCEEDED) => true,
        (Some(seconds), _) => due(current, seconds).is_none_or(|due| due < now),
    }
}

fn due(progressing: &Condition, seconds: i32) -> Option<Timestamp> {
    let updated = progressing.last_update_time?;
    Some(Time::from_second(updated.second().saturating_add(i64::from(seconds))).timestamp())
}

/// Sets the Progressing condition of a rollout on `next`.
///
/// Upstream: `syncRolloutStatus`, `pkg/controller/deployment/progress.go`.
pub fn set_progressing(observed: &Observed, new: Option<&str>, next: &mut DeploymentStatus, now: Timestamp) {
    let spec = observed.spec();
    if deadline(spec).is_none() {
        condition::remove(&mut next.conditions, conditions::PROGRESSING);
        return;
    }
    let current = condition::find(&observed.status.conditions, conditions::PROGRESSING);
    let was_complete = current.is_some_and(|current| current.reason == reasons::NEW_REPLICA_SET_AVAILABLE);
    if next.replicas == next.updated_replicas && was_complete {
        // No rollout is going on, whatever its pods do.
        return;
    }
    let subject = match new {
        Some(name) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", observed.deployment.metadata.name()),
    };
    if is_complete(observed, next) {
        let message = format!("{subject} has successfully progressed.");
        let complete = condition(condition::TRUE, reasons::NEW_REPLICA_SET_AVAILABLE, message, now);
        condition::set(&mut next.conditions, complete);
    } else if is_progressing(&observed.deployment.status, next) {
        let message = format!("{subject} is progressing.");
        let mut progressing = condition(condition::TRUE, reasons::REPLICA_SET_UPDATED, message, now);
        // Each progress moves the update time, even where status and reason stay: the deadline counts from it.
        if let Some(current) = current.filter(|current| current.status == condition::TRUE) {
            progressing.last_transition_time = current.last_transition_time;
        }
        condition::replace(&mut next.conditions, progressing);
    } else if is_timed_out(spec, &next.conditions, now) {
        let message = format!("{subject} has timed out progressing.");
        let timed_out = condition(condition::FALSE, reasons::PROGRESS_DEADLINE_EXCEEDED, message, now);
        condition::set(&mut next.conditions, timed_out);
    }
}

/// When to look again whether a rollout has timed out, should nothing happen before; none if it cannot.
///
/// Upstream: `requeueStuckDeployment`, `progress.go`.
pub fn next_check(observed: &Observed, next: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
    let seconds = deadline(observed.spec())?;
    let current = condition::find(&observed.status.conditions, conditions::PROGRESSING)?;
    let cannot_time_out =
        [reasons::PROGRESS_DEADLINE_EXCEEDED, reasons::NEW_REPLICA_SET_AVAILABLE].contains(&current.reason.as_str());
    if cannot_time_out || is_complete(observed, next) {
        return None;
    }
    let left = due(current, seconds).and_then(|due| Duration::try_from(now.duration_until(due)).ok());
    // A second more, because times are stored in whole ones.
    Some(left.unwrap_or_default() + Duration::from_secs(1))
}
