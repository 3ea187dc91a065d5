//! Scaling without a rollout: the Deployment is paused, or its size has changed.

use std::cmp::{Ordering, Reverse};

use super::limits::{max_replicas, replica_count, to_i32};
use super::reasons::Why;
use super::replica_sets::ReplicaSets;
use super::step::{Resize, Scale};
use crate::objects::{DeploymentSpec, ReplicaSet, Strategy, annotations};
use crate::observe::Observed;

/// Whether some ReplicaSet was last scaled for another size of the Deployment.
///
/// Only a rolling update knows proportions: several ReplicaSets of another strategy are left to its rollout. Upstream
/// counts them as a scaling event too, scales none of them, and never gets to the rollout.
///
/// Upstream: `isScalingEvent`, `pkg/controller/deployment/sync.go`.
pub(super) fn is_scaling_event(observed: &Observed) -> bool {
    let spec = observed.spec();
    let active = observed.replica_sets.iter().filter(|replica_set| replica_set.is_active()).count();
    let can_scale = active <= 1 || matches!(spec.strategy, Strategy::RollingUpdate { .. });
    can_scale && observed.replica_sets.iter().any(|replica_set| calls_for_scaling(replica_set, spec.replicas))
}

fn calls_for_scaling(replica_set: &ReplicaSet, replicas: i32) -> bool {
    let desired = count_annotation(replica_set, annotations::DESIRED_REPLICAS);
    replica_set.is_active() && desired.is_some_and(|desired| desired != replicas)
}

/// The sizes that follow from the Deployment's.
///
/// Upstream: `scale`, `sync.go`.
pub(super) fn scale<'a>(observed: &Observed, sets: &ReplicaSets<'a>) -> Vec<Resize<'a>> {
    let spec = observed.spec();
    let new = sets.new.map(|new| &**new).filter(|new| new.is_active());
    let active: Vec<&ReplicaSet> = sets.active_old().rev().chain(new).collect();
    let only = match active[..] {
        [] => sets.new.or(sets.old.last().copied()).map(|replica_set| &**replica_set),
        [only] => Some(only),
        [..] => None,
    };
    if let Some(only) = only {
        // One that happens to have the right size must note it too. Upstream leaves the old note, sees a scaling event in
        // it for ever, and never gets to the rollout.
        let is_to_scale = only.spec.replicas != spec.replicas || calls_for_scaling(only, spec.replicas);
        let resize = Resize::new(only, spec.replicas, Why::OnlyOne { wanted: spec.replicas });
        return is_to_scale.then_some(resize).into_iter().collect();
    }
    if let Some(new) = sets.new.filter(|new| is_saturated(spec, new)) {
        let why = Why::NewHasAll { available: new.status.available_replicas };
        return sets.active_old().rev().map(|old| Resize::new(old, 0, why)).collect();
    }
    match spec.strategy {
        Strategy::RollingUpdate { .. } => in_proportion(spec, observed.deployment.status.replicas, active),
        Strategy::Recreate | Strategy::Unknown(_) => Vec::new(),
    }
}

/// Grow or shrink all ReplicaSets in proportion, so that a rollout moves neither forward nor back.
fn in_proportion<'a>(spec: &DeploymentSpec, status_replicas: i32, mut active: Vec<&'a ReplicaSet>) -> Vec<Resize<'a>> {
    let allowed = if spec.replicas > 0 { i64::from(max_replicas(spec)) } else { 0 };
    let to_add = allowed - replica_count(active.iter().copied());
    match to_add.cmp(&0) {
        // The larger one first; of equal ones the newest grows first and the oldest shrinks first.
        Ordering::Greater => active.sort_by_key(|set| (Reverse(set.spec.replicas), Reverse(set.age()))),
        Ordering::Less => active.sort_by_key(|set| (Reverse(set.spec.replicas), set.age())),
        Ordering::Equal => {}
    }
    let mut added = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for replica_set in &active {
        let share = proportion(replica_set, spec, status_replicas, to_add, added);
        sizes.push(i64::from(replica_set.spec.replicas) + share);
        added += share;
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    let resizes = active.into_iter().zip(sizes);
    resizes
        .map(|(replica_set, size)| Resize::new(replica_set, to_i32(size), Why::InProportion { change: to_add }))
        .filter(|Resize { replica_set, scale: Scale { from, to }, .. }| {
            from != to || !has_noted_size(spec, replica_set)
        })
        .collect()
}

/// By how much a ReplicaSet grows or shrinks when `to_add` pods are shared out and `added` of them already are.
///
/// Upstream: `GetReplicaSetProportion`, `pkg/controller/deployment/util/deployment_util.go`.
pub fn proportion(
    replica_set: &ReplicaSet,
    spec: &DeploymentSpec,
    status_replicas: i32,
    to_add: i64,
    added: i64,
) -> i64 {
    if replica_set.spec.replicas == 0 || to_add == 0 || to_add == added {
        return 0;
    }
    let (fraction, allowed) = (fraction(replica_set, spec, status_replicas), to_add - added);
    if to_add > 0 { fraction.min(allowed) } else { fraction.max(allowed) }
}

/// Upstream: `getReplicaSetFraction`, `deployment_util.go`.
fn fraction(replica_set: &ReplicaSet, spec: &DeploymentSpec, status_replicas: i32) -> i64 {
    let size = i64::from(replica_set.spec.replicas);
    if spec.replicas == 0 {
        return -size;
    }
    let noted = count_annotation(replica_set, annotations::MAX_REPLICAS).filter(|max| *max != 0);
    // Somebody removed or spoilt the annotation: the present size is the next best base, and shares are limited anyway.
    let base = i128::from(noted.unwrap_or(status_replicas));
    if base == 0 {
        return 0;
    }
    let product = i128::from(size) * i128::from(max_replicas(spec));
    // The quotient, rounded half up: neither can be negative.
    let rounded = (2 * product + base).div_euclid(2 * base);
    i64::try_from(rounded).unwrap_or(i64::MAX) - size
}

/// The count that an annotation says; none if it says none.
///
/// Upstream: `getNonNegativeInt32FromAnnotation`, `deployment_util.go`.
fn count_annotation(replica_set: &ReplicaSet, key: &str) -> Option<i32> {
    // Go reads an unsigned number here, so a sign is no part of it.
    let text =
        replica_set.metadata.annotations.get(key).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

/// Whether the new ReplicaSet has all pods that the Deployment wants, and both know it.
///
/// Upstream: `IsSaturated`, `deployment_util.go`.
fn is_saturated(spec: &DeploymentSpec, replica_set: &ReplicaSet) -> bool {
    let desired =
        replica_set.metadata.annotations.get(annotations::DESIRED_REPLICAS).and_then(|text| text.parse().ok());
    let counts = [Some(replica_set.spec.replicas), desired, Some(replica_set.status.available_replicas)];
    counts == [Some(spec.replicas); 3]
}

/// Upstream: `ReplicasAnnotationsNeedUpdate`, `deployment_util.go`.
fn has_noted_size(spec: &DeploymentSpec, replica_set: &ReplicaSet) -> bool {
    let notes = |key: &str, count: i32| replica_set.metadata.annotations.get(key) == Some(&count.to_string());
    notes(annotations::DESIRED_REPLICAS, spec.replicas) && notes(annotations::MAX_REPLICAS, max_replicas(spec))
}
