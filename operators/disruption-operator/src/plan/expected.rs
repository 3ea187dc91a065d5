//! The number of pods expected, and how many of them must be healthy.
//!
//! Upstream: `getExpectedPodCount`, `pkg/controller/disruption/disruption.go`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::int_or_percent::{IntOrPercent, InvalidPercent, Rounding};
use shared::api::object::Uid;
use shared::transport::clock::left_of;

use crate::objects::owner::OwnerScale;
use crate::objects::{BudgetCondition, Failure, Limit, condition_reasons};
use crate::observe::Observed;
use crate::observe::scales::Scales;

/// How long a status outlasts the reads of owners. Restarts of apiservers and elections of etcd are shorter.
const OUTAGE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub desired_healthy: i32,
    pub pods: i32,
    /// The number of pods without a controller, where the controllers' scales count.
    pub unmanaged: usize,
}

/// Compute the numbers from the budget, its pods and the scales of their owners.
pub fn expected(observed: &Observed) -> Result<Expected, Failure> {
    match &observed.budget.limit {
        Limit::None => Ok(Expected::default()),
        Limit::MinAvailable(IntOrPercent::Int(healthy)) => {
            let pods = i32::try_from(observed.pods.len()).unwrap_or(i32::MAX);
            Ok(Expected { desired_healthy: *healthy, pods, unmanaged: 0 })
        }
        Limit::MinAvailable(share) => {
            let (pods, unmanaged) = scale(observed)?;
            Ok(Expected { desired_healthy: part(share, pods)?, pods, unmanaged })
        }
        Limit::MaxUnavailable(share) => {
            let (pods, unmanaged) = scale(observed)?;
            Ok(Expected { desired_healthy: pods.saturating_sub(part(share, pods)?).max(0), pods, unmanaged })
        }
    }
}

fn part(share: &IntOrPercent, total: i32) -> Result<i32, Failure> {
    share.of(total, Rounding::Up).map_err(|invalid: InvalidPercent| Failure::lasting(invalid.to_string()))
}

/// The numbers of the last status, while owners have not been readable for a short time only. None if the status does not
/// have the numbers of this spec.
pub(super) fn as_before(observed: &Observed, now: Timestamp) -> Option<Expected> {
    let budget = &*observed.budget;
    let status = &budget.status;
    let is_short = observed.failing_since.is_some_and(|since| left_of(OUTAGE, since, now).is_some());
    let has_failed = |condition: &BudgetCondition| condition.reason == condition_reasons::SYNC_FAILED;
    let is_counted = status.allowed_condition().is_some_and(|condition| !has_failed(condition))
        && status.observed_generation == budget.metadata.generation;
    let unmanaged = unmanaged(observed);
    let before = Expected { desired_healthy: status.desired_healthy, pods: status.expected_pods, unmanaged };
    (is_short && is_counted).then_some(before)
}

/// The sum of the owners' scales, and the number of pods without a controller.
///
/// An ended pod counts only through its owner's scale. Without one, such as that of a Job, it needs no replacement.
///
/// Upstream: `getExpectedScale`, `pkg/controller/disruption/disruption.go`, fails at an ended pod without a scale too.
fn scale(observed: &Observed) -> Result<(i32, usize), Failure> {
    let unmanaged = unmanaged(observed);
    let Scales::Read(scales) = &observed.scales else { return Ok((0, unmanaged)) };
    if let Some(failure) = observed.scales.passing_failure() {
        return Err(failure.clone());
    }
    // By uid, because two ReplicaSets of one Deployment share its scale.
    let mut replicas: BTreeMap<Uid, i32> = BTreeMap::new();
    for pod in &observed.pods {
        match pod.metadata.controller.as_ref().and_then(|owner| scales.get(&owner.uid)) {
            Some(Ok(OwnerScale { uid, replicas: scale })) => {
                replicas.insert(*uid, *scale);
            }
            Some(Err(failure)) if !pod.has_ended => return Err(failure.clone()),
            Some(Err(_)) | None => {}
        }
    }
    let all = replicas.values().fold(0_i32, |all, replicas| all.saturating_add(*replicas));
    Ok((all, unmanaged))
}

fn unmanaged(observed: &Observed) -> usize {
    observed.pods.iter().filter(|pod| pod.metadata.controller.is_none() && !pod.has_ended).count()
}
