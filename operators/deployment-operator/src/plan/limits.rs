//! How many pods a Deployment may have, and how many may be unavailable.

use shared::api::int_or_percent::{IntOrPercent, InvalidPercent, Rounding};

use crate::objects::{DeploymentSpec, ReplicaSet, Strategy};

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

pub fn to_i32(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(if count < 0 { i32::MIN } else { i32::MAX })
}
