//! How many pods there should be, and how many of them must be healthy.
//!
//! Left out: reading how many the owners ask for, which is [`crate::observe::scales`]'.
//!
//! Upstream: `getExpectedPodCount`, `pkg/controller/disruption/disruption.go`.

use std::collections::BTreeMap;

use shared::api::int_or_percent::{IntOrPercent, InvalidPercent, Rounding};
use shared::api::object::Uid;

use super::Failure;
use crate::objects::Limit;
use crate::observe::Observed;
use crate::observe::scales::{OwnerScale, Scales};

/// The numbers that a budget expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// How many pods must be healthy.
    pub desired_healthy: i32,
    /// How many there should be.
    pub pods: i32,
    /// How many have no owner, where owners say how many there should be.
    pub unmanaged: usize,
}

/// Computes how many pods there should be, from the budget, its pods and their owners.
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

/// How many pods the owners ask for in all, and how many pods have no owner.
///
/// Upstream: `getExpectedScale`, `pkg/controller/disruption/disruption.go`.
fn scale(observed: &Observed) -> Result<(i32, usize), Failure> {
    let unmanaged = observed.pods.iter().filter(|pod| pod.metadata.controller.is_none()).count();
    let replicas: BTreeMap<Uid, i32> = match &observed.scales {
        Scales::Unread => BTreeMap::new(),
        // Two ReplicaSets of one Deployment have the same scale.
        Scales::Read(scales) => scales.values().map(|OwnerScale { uid, replicas }| (*uid, *replicas)).collect(),
        Scales::Failed(failure) => return Err(failure.clone()),
    };
    let all = replicas.values().fold(0_i32, |all, replicas| all.saturating_add(*replicas));
    Ok((all, unmanaged))
}
