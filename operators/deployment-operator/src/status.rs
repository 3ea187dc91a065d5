//! The status that follows from what was observed.
//!
//! Left out: the Progressing condition, which is [`crate::plan::progress`]'s.

use jiff::Timestamp;
use shared::api::condition::{self, Condition};
use shared::api::time::Time;

use crate::apply::Outcome;
use crate::objects::{Deployment, DeploymentStatus, ReplicaSet, StatusPatch, conditions, reasons};
use crate::observe::Observed;
use crate::plan::StatusScope;
use crate::plan::limits::{max_unavailable, replica_count, to_i32};
use crate::plan::progress;
use crate::plan::replica_sets::ReplicaSets;

/// The status at the end of a sync; none if the status stays as it is.
pub fn next_status(observed: &Observed, outcome: &Outcome, now: Timestamp) -> Option<NextStatus> {
    let fell_short = outcome.failure.as_ref().is_some_and(|failure| failure.before_status);
    let scope = if fell_short { StatusScope::Decided } else { outcome.scope };
    NextStatus::new(observed, calculate_status(observed, scope, now))
}

/// The Deployment's next status, as far as `scope` goes.
///
/// `observed` has what was decided on the way; ReplicaSets count as they were observed.
///
/// Upstream: `syncDeploymentStatus`, `pkg/controller/deployment/sync.go`, and `syncRolloutStatus`,
/// `pkg/controller/deployment/progress.go`.
pub fn calculate_status(observed: &Observed, scope: StatusScope, now: Timestamp) -> DeploymentStatus {
    match scope {
        StatusScope::Decided => observed.status.clone(),
        StatusScope::ObservedGeneration => {
            let generation = observed.deployment.metadata.generation.max(observed.status.observed_generation);
            DeploymentStatus { observed_generation: generation, ..observed.status.clone() }
        }
        StatusScope::Counts => counted(observed, &ReplicaSets::of(observed), now),
        StatusScope::Rollout => {
            let sets = ReplicaSets::of(observed);
            let mut next = counted(observed, &sets, now);
            progress::set_progressing(observed, sets.new.map(|new| new.metadata.name()), &mut next, now);
            match replica_failure(&sets) {
                Some(failure) => condition::set(&mut next.conditions, failure),
                None => condition::remove(&mut next.conditions, conditions::REPLICA_FAILURE),
            }
            next
        }
    }
}

/// Upstream: `calculateStatus`, `sync.go`.
fn counted(observed: &Observed, sets: &ReplicaSets<'_>, now: Timestamp) -> DeploymentStatus {
    let spec = observed.spec();
    let sum = |count: fn(&ReplicaSet) -> i32| to_i32(sets.all().map(|set| i64::from(count(set))).sum());
    let available = sum(|set| set.status.available_replicas);
    let unavailable = (replica_count(sets.all()) - i64::from(available)).max(0);
    let mut next = DeploymentStatus {
        observed_generation: observed.deployment.metadata.generation,
        replicas: sum(|set| set.status.replicas),
        updated_replicas: sets.new.map_or(0, |new| new.status.replicas),
        ready_replicas: sum(|set| set.status.ready_replicas),
        available_replicas: available,
        unavailable_replicas: to_i32(unavailable),
        terminating_replicas: terminating_replicas(&observed.deployment, sets),
        collision_count: observed.status.collision_count,
        conditions: observed.status.conditions.clone(),
    };
    let min_available = i64::from(spec.replicas) - i64::from(max_unavailable(spec));
    let (status, reason, message) = if i64::from(available) >= min_available {
        (condition::TRUE, reasons::MINIMUM_REPLICAS_AVAILABLE, "Deployment has minimum availability.")
    } else {
        (condition::FALSE, reasons::MINIMUM_REPLICAS_UNAVAILABLE, "Deployment does not have minimum availability.")
    };
    let now = Time::of(now);
    let available = Condition::new(conditions::AVAILABLE, status, reason, message).transitioned_at(now).updated_at(now);
    condition::set(&mut next.conditions, available);
    next
}

/// The sum, if every ReplicaSet that was synced says its part; none says it where the server drops this field.
///
/// Where no ReplicaSet was synced the sum is 0, and a server that has no sum although this generation was synced before
/// drops that, too. Upstream asks its own feature gate, and where that is on and the server's off, writes at each sync.
///
/// Upstream: `GetTerminatingReplicaCountForReplicaSets`, `pkg/controller/deployment/util/deployment_util.go`.
fn terminating_replicas(deployment: &Deployment, sets: &ReplicaSets<'_>) -> Option<i32> {
    let synced: Vec<&ReplicaSet> = sets
        .all()
        .filter(|set| set.status.observed_generation != 0 || set.status.terminating_replicas.is_some())
        .collect();
    let was_synced = deployment.status.observed_generation == deployment.metadata.generation;
    if synced.is_empty() && was_synced {
        return deployment.status.terminating_replicas.map(|_| 0);
    }
    synced.iter().map(|set| set.status.terminating_replicas.map(i64::from)).sum::<Option<i64>>().map(to_i32)
}

/// The failure of the new ReplicaSet, or else the first of any.
///
/// Upstream: `getReplicaFailures`, `progress.go`.
fn replica_failure(sets: &ReplicaSets<'_>) -> Option<Condition> {
    let of = |set: &ReplicaSet| condition::find(&set.status.conditions, conditions::REPLICA_FAILURE).cloned();
    let mut failure = sets.new.and_then(|new| of(new)).or_else(|| sets.all().find_map(of))?;
    failure.last_update_time = failure.last_transition_time;
    Some(failure)
}

/// Whether a status tells of nothing but counts in between, and when they last changed: neither that all pods are of this
/// template and available, nor of another spec or condition.
fn is_in_between(replicas: i32, before: &DeploymentStatus, next: &DeploymentStatus) -> bool {
    let told = |status: &DeploymentStatus| (status.observed_generation, status.collision_count);
    let is_same = |(before, next): (&Condition, &Condition)| {
        let times = (next.last_update_time, next.last_transition_time);
        Condition { last_update_time: times.0, last_transition_time: times.1, ..before.clone() } == *next
    };
    told(before) == told(next)
        && before.conditions.len() == next.conditions.len()
        && before.conditions.iter().zip(&next.conditions).all(is_same)
        && [next.replicas, next.updated_replicas, next.available_replicas] != [replicas; 3]
}

#[derive(Clone, Debug, PartialEq)]
pub struct NextStatus {
    pub patch: StatusPatch,
    /// Whether it has nothing new but counts on the way to the end state.
    pub is_in_between: bool,
}

impl NextStatus {
    /// The patch from the written status to this one; none if they are the same.
    pub fn new(observed: &Observed, next: DeploymentStatus) -> Option<Self> {
        let (before, revision) = (&observed.deployment.status, observed.decided_revision());
        let is_in_between = revision.is_none() && is_in_between(observed.spec().replicas, before, &next);
        Some(Self { patch: StatusPatch::new(before, next, revision)?, is_in_between })
    }
}
