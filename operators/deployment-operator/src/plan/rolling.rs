//! The strategy `RollingUpdate`: the new ReplicaSet grows as far as surge allows, old ones shrink as far as enough pods stay
//! available.
//!
//! Left out: which pods go, which each ReplicaSet's own controller decides: unready ones first.

use std::cmp::Ordering;

use super::deployment_util::{max_replicas, max_unavailable, new_replicas, replica_count, to_i32};
use super::sync::{ReplicaSets, plan_cleanup, plan_creation, plan_revision};
use super::{Draft, Plan, Reason, Scale, StatusScope, Step, Why, progress};
use crate::objects::ReplicaSet;

/// Upstream: `rolloutRolling`, `pkg/controller/deployment/rolling.go`.
pub(super) fn plan_rollout(mut draft: Draft<'_>, sets: &ReplicaSets<'_>) -> Plan {
    let reason = Reason::rolling_update(draft.spec(), sets);
    let Some(new) = sets.new else {
        plan_creation(&mut draft, sets);
        return draft.finish(reason, StatusScope::Decided);
    };
    plan_revision(&mut draft, sets);
    let scope = match plan_new(&mut draft, sets, new) {
        Ok(true) => StatusScope::Rollout,
        Ok(false) => {
            if !plan_old(&mut draft, sets, new) && progress::is_complete_as_written(draft.observed) {
                plan_cleanup(&mut draft, sets);
            }
            StatusScope::Rollout
        }
        Err(message) => {
            draft.push(Step::Fail(message));
            StatusScope::Decided
        }
    };
    draft.finish(reason, scope)
}

/// Plans the size of the new ReplicaSet; tells whether it changes.
///
/// Upstream: `reconcileNewReplicaSet`, `rolling.go`.
fn plan_new(draft: &mut Draft<'_>, sets: &ReplicaSets<'_>, new: &ReplicaSet) -> Result<bool, String> {
    let (spec, from) = (draft.spec(), new.spec.replicas);
    let (to, why) = match from.cmp(&spec.replicas) {
        Ordering::Greater => (spec.replicas, Why::TooLarge { wanted: spec.replicas }),
        Ordering::Less => {
            let total = replica_count(sets.all());
            (new_replicas(spec, total, from)?, Why::RoomForSurge { total, max_replicas: max_replicas(spec) })
        }
        Ordering::Equal => return Ok(false),
    };
    if to == from {
        return Ok(false);
    }
    draft.scale(new, Scale { from, to }, why, true);
    Ok(true)
}

/// Plans the sizes of the old ReplicaSets; tells whether any changes.
///
/// Upstream: `reconcileOldReplicaSets`, `rolling.go`.
fn plan_old(draft: &mut Draft<'_>, sets: &ReplicaSets<'_>, new: &ReplicaSet) -> bool {
    let spec = draft.spec();
    let mut old: Vec<(&ReplicaSet, i32)> = sets.active_old().map(|old| (old, old.spec.replicas)).collect();
    if old.is_empty() {
        return false;
    }
    let min_available = i64::from(spec.replicas) - i64::from(max_unavailable(spec));
    // Pods of the new ReplicaSet that are not available yet must not make room for more unavailable ones.
    let new_available = available(new, new.spec.replicas);
    let new_unavailable = i64::from(new.spec.replicas) - new_available;
    let max_scaled_down = replica_count(sets.all()) - min_available - new_unavailable;
    if max_scaled_down <= 0 {
        return false;
    }
    let cleaned_up = plan_cleanup_of_unhealthy(draft, &mut old, max_scaled_down);
    let all_available = old.iter().map(|(old, size)| available(old, *size)).sum::<i64>() + new_available;
    let scaled_down = plan_scale_down(draft, &old, all_available, min_available);
    cleaned_up || scaled_down
}

/// How many pods are available and will stay. A ReplicaSet whose status says more than its size has just been scaled
/// down: the surplus is on its way out. Upstream counts it, unless it meets such an old ReplicaSet while it looks for
/// unhealthy ones, which ends its scaling down.
fn available(replica_set: &ReplicaSet, size: i32) -> i64 {
    i64::from(replica_set.status.available_replicas.min(size))
}

/// Shrinks old ReplicaSets by their unavailable pods: that takes nothing away, and they could hold up the rollout.
///
/// Upstream: `cleanupUnhealthyReplicas`, `rolling.go`.
fn plan_cleanup_of_unhealthy(draft: &mut Draft<'_>, old: &mut [(&ReplicaSet, i32)], max: i64) -> bool {
    let mut done = 0;
    for (replica_set, size) in old {
        let unhealthy = i64::from(*size) - available(replica_set, *size);
        let count = unhealthy.min(max - done);
        if count <= 0 {
            continue;
        }
        let to = to_i32(i64::from(*size) - count);
        draft.scale(
            replica_set,
            Scale { from: *size, to },
            Why::Unavailable { unavailable: unhealthy, room: max },
            false,
        );
        *size = to;
        done += count;
    }
    done > 0
}

/// Shrinks old ReplicaSets by the pods beyond those that must be available, oldest first.
///
/// Upstream: `scaleDownOldReplicaSetsForRollingUpdate`, `rolling.go`.
fn plan_scale_down(draft: &mut Draft<'_>, old: &[(&ReplicaSet, i32)], available: i64, min_available: i64) -> bool {
    let why = Why::EnoughAvailable { available, min_available };
    let (max, mut done) = (available - min_available, 0);
    for (replica_set, size) in old {
        let count = i64::from(*size).min(max - done);
        if count <= 0 {
            continue;
        }
        let to = to_i32(i64::from(*size) - count);
        draft.scale(replica_set, Scale { from: *size, to }, why, false);
        done += count;
    }
    done > 0
}
