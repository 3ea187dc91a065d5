//! The strategy `RollingUpdate`: the new ReplicaSet grows as far as surge allows, old ones shrink as far as enough pods stay
//! available. Which pods go is decided by each ReplicaSet's own controller: unready ones first.

use std::cmp::Ordering;

use super::limits::{max_replicas, max_unavailable, new_replicas, replica_count, to_i32};
use super::new_replica_set::create;
use super::reasons::{Reason, Why};
use super::replica_sets::ReplicaSets;
use super::step::{Resize, Scale, Step};
use super::{Decision, StatusScope, history, progress};
use crate::objects::{DeploymentSpec, ReplicaSet};
use crate::observe::Observed;

/// Upstream: `rolloutRolling`, `pkg/controller/deployment/rolling.go`.
pub(super) fn roll<'a>(observed: &Observed, sets: &ReplicaSets<'a>) -> Decision<'a> {
    let spec = observed.spec();
    let reason = Reason::rolling_update(spec, sets);
    let Some(new) = sets.new else { return Decision::only(reason, create(observed, sets)) };
    let grown = match resize_new(spec, sets, new) {
        Ok(grown) => grown,
        Err(message) => return Decision::only(reason, Step::Fail(message)),
    };
    let resizes = grown.map_or_else(|| resize_old(spec, sets, new), |grown| vec![grown]);
    let is_over = resizes.is_empty() && progress::is_complete_as_written(observed);
    let then = if is_over { history::clean_up(spec, sets) } else { Vec::new() };
    Decision { reason, resizes, then, status: StatusScope::Rollout }
}

/// The size of the new ReplicaSet, if it changes.
///
/// Upstream: `reconcileNewReplicaSet`, `rolling.go`.
fn resize_new<'a>(
    spec: &DeploymentSpec,
    sets: &ReplicaSets<'_>,
    new: &'a ReplicaSet,
) -> Result<Option<Resize<'a>>, String> {
    let from = new.spec.replicas;
    let (to, why) = match from.cmp(&spec.replicas) {
        Ordering::Greater => (spec.replicas, Why::TooLarge { wanted: spec.replicas }),
        Ordering::Less => {
            let total = replica_count(sets.all());
            (new_replicas(spec, total, from)?, Why::RoomForSurge { total, max_replicas: max_replicas(spec) })
        }
        Ordering::Equal => return Ok(None),
    };
    Ok((to != from).then(|| Resize::new(new, to, why)))
}

/// The sizes of the old ReplicaSets that change: first by their unavailable pods, then by the available ones that may go.
///
/// Upstream: `reconcileOldReplicaSets`, `rolling.go`.
fn resize_old<'a>(spec: &DeploymentSpec, sets: &ReplicaSets<'a>, new: &ReplicaSet) -> Vec<Resize<'a>> {
    let old: Vec<SizedSet<'a>> = sets.active_old().map(|old| (old, old.spec.replicas)).collect();
    let min_available = i64::from(spec.replicas) - i64::from(max_unavailable(spec));
    // Pods of the new ReplicaSet that are not available yet must not make room for more unavailable ones.
    let new_available = available(new, new.spec.replicas);
    let new_unavailable = i64::from(new.spec.replicas) - new_available;
    let max_scaled_down = replica_count(sets.all()) - min_available - new_unavailable;
    if old.is_empty() || max_scaled_down <= 0 {
        return Vec::new();
    }
    let (mut resizes, left) = without_unavailable(old, max_scaled_down);
    let all_available = left.iter().map(|(old, size)| available(old, *size)).sum::<i64>() + new_available;
    resizes.extend(without_surplus(left, all_available, min_available));
    resizes
}

/// An old ReplicaSet, and the size that it has or gets.
type SizedSet<'a> = (&'a ReplicaSet, i32);

/// How many pods are available and will stay. A ReplicaSet whose status says more than its size has just been scaled
/// down: the surplus is on its way out. Upstream counts it, unless it meets such an old ReplicaSet while it looks for
/// unhealthy ones, which ends its scaling down.
fn available(replica_set: &ReplicaSet, size: i32) -> i64 {
    i64::from(replica_set.status.available_replicas.min(size))
}

/// Shrink old ReplicaSets by their unavailable pods: no capacity is lost, and they could block the rollout. Returns the
/// sizes afterwards too.
///
/// Upstream: `cleanupUnhealthyReplicas`, `rolling.go`.
fn without_unavailable(mut old: Vec<SizedSet<'_>>, max: i64) -> (Vec<Resize<'_>>, Vec<SizedSet<'_>>) {
    let (mut done, mut resizes) = (0, Vec::new());
    for (replica_set, size) in &mut old {
        let unavailable = i64::from(*size) - available(replica_set, *size);
        let count = unavailable.min(max - done);
        if count > 0 {
            let why = Why::Unavailable { unavailable, room: max };
            let resize = shrink(replica_set, *size, count, why);
            *size = resize.scale.to;
            resizes.push(resize);
            done += count;
        }
    }
    (resizes, old)
}

/// Shrink old ReplicaSets by the pods beyond those that must be available, oldest first.
///
/// Upstream: `scaleDownOldReplicaSetsForRollingUpdate`, `rolling.go`.
fn without_surplus(old: Vec<SizedSet<'_>>, available: i64, min_available: i64) -> Vec<Resize<'_>> {
    let why = Why::EnoughAvailable { available, min_available };
    let (max, mut done, mut resizes) = (available - min_available, 0, Vec::new());
    for (replica_set, size) in old {
        let count = i64::from(size).min(max - done);
        if count > 0 {
            resizes.push(shrink(replica_set, size, count, why));
            done += count;
        }
    }
    resizes
}

/// The status does not wait for this.
fn shrink(replica_set: &ReplicaSet, from: i32, by: i64, why: Why) -> Resize<'_> {
    Resize { replica_set, scale: Scale { from, to: to_i32(i64::from(from) - by) }, why, before_status: false }
}
