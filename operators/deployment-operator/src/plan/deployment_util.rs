//! Sums, shares and limits: the arithmetic that the other rooms decide by.
//!
//! Left out: whatever knows more than one ReplicaSet at a time.

use shared::api::int_or_percent::{IntOrPercent, InvalidPercent, Rounding};

use crate::objects::{DeploymentSpec, ReplicaSet, Strategy, annotations};

/// How many pods a rolling update may have more than asked for, and how many may be unavailable. If both come to
/// nothing, one pod may be unavailable: surge might not work because of a quota.
///
/// Upstream: `ResolveFenceposts`, `pkg/controller/deployment/util/deployment_util.go`.
pub fn resolve_fenceposts(
    max_surge: Option<&IntOrPercent>,
    max_unavailable: Option<&IntOrPercent>,
    desired: i32,
) -> Result<(i32, i32), InvalidPercent> {
    let of = |value: Option<&IntOrPercent>, rounding| value.map_or(Ok(0), |value| value.of(desired, rounding));
    let surge = of(max_surge, Rounding::Up)?;
    let unavailable = of(max_unavailable, Rounding::Down)?;
    Ok(if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) })
}

fn fenceposts(spec: &DeploymentSpec) -> Option<(i32, i32)> {
    match &spec.strategy {
        Strategy::RollingUpdate { max_surge, max_unavailable } => {
            // Validation refuses what cannot be resolved.
            Some(resolve_fenceposts(max_surge.as_ref(), max_unavailable.as_ref(), spec.replicas).unwrap_or((0, 0)))
        }
        Strategy::Recreate | Strategy::Unknown(_) => None,
    }
}

/// Upstream: `MaxSurge`, `deployment_util.go`.
pub fn max_surge(spec: &DeploymentSpec) -> i32 {
    fenceposts(spec).map_or(0, |(surge, _)| surge)
}

/// Upstream: `MaxUnavailable`, `deployment_util.go`.
pub fn max_unavailable(spec: &DeploymentSpec) -> i32 {
    match fenceposts(spec) {
        Some((_, unavailable)) if spec.replicas != 0 => unavailable.min(spec.replicas),
        Some(_) | None => 0,
    }
}

/// How many pods there may be at most.
pub fn max_replicas(spec: &DeploymentSpec) -> i32 {
    spec.replicas.saturating_add(max_surge(spec))
}

/// The sum of the sizes asked for.
///
/// Upstream: `GetReplicaCountForReplicaSets`, `deployment_util.go`.
pub fn replica_count<'a>(replica_sets: impl IntoIterator<Item = &'a ReplicaSet>) -> i64 {
    replica_sets.into_iter().map(|replica_set| i64::from(replica_set.spec.replicas)).sum()
}

/// The size of the new ReplicaSet that the room for surge allows.
///
/// `total` is the sum of the sizes of all ReplicaSets, `current` of it the new one's.
///
/// Upstream: `NewRSNewReplicas`, `deployment_util.go`.
pub fn new_replicas(spec: &DeploymentSpec, total: i64, current: i32) -> Result<i32, String> {
    match &spec.strategy {
        Strategy::RollingUpdate { max_surge, .. } => {
            let max_surge = max_surge.as_ref().ok_or("nil value for IntOrString")?;
            let surge = max_surge.of(spec.replicas, Rounding::Up).map_err(|error| error.to_string())?;
            let room = i64::from(spec.replicas) + i64::from(surge) - total;
            if room <= 0 {
                return Ok(current);
            }
            let missing = i64::from(spec.replicas) - i64::from(current);
            Ok(to_i32(i64::from(current) + room.min(missing)))
        }
        Strategy::Recreate => Ok(spec.replicas),
        Strategy::Unknown(type_) => Err(format!("deployment type {type_} isn't supported")),
    }
}

/// By how much a ReplicaSet grows or shrinks when `to_add` pods are shared out and `added` of them already are.
///
/// Upstream: `GetReplicaSetProportion`, `deployment_util.go`.
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
pub fn count_annotation(replica_set: &ReplicaSet, key: &str) -> Option<i32> {
    // Go reads an unsigned number here, so a sign is no part of it.
    let text =
        replica_set.metadata.annotations.get(key).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

/// A ReplicaSet's place in the history: 0 if it has none, and none if what it has is no number.
///
/// Upstream: `Revision`, `deployment_util.go`.
pub fn revision(replica_set: &ReplicaSet) -> Option<i64> {
    replica_set.metadata.annotations.get(annotations::REVISION).map_or(Some(0), |text| text.parse().ok())
}

/// Whether the new ReplicaSet has all pods that the Deployment wants, and both know it.
///
/// Upstream: `IsSaturated`, `deployment_util.go`.
pub fn is_saturated(spec: &DeploymentSpec, replica_set: &ReplicaSet) -> bool {
    let desired =
        replica_set.metadata.annotations.get(annotations::DESIRED_REPLICAS).and_then(|text| text.parse().ok());
    let counts = [Some(replica_set.spec.replicas), desired, Some(replica_set.status.available_replicas)];
    counts == [Some(spec.replicas); 3]
}

/// Into the range of a count.
pub fn to_i32(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(if count < 0 { i32::MIN } else { i32::MAX })
}
