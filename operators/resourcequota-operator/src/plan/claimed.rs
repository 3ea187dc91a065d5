//! What a claim counts under the name of an extended resource that stands for devices: those that it may get, without
//! those that the pod for which it was made counts already.
//!
//! Upstream: `addExtendedResourceQuota` and `getVerifiedPodUsage`, `pkg/quota/v1/evaluator/core/resource_claims.go`.

use jiff::Timestamp;
use shared::api::quantity::Quantity;

use super::usage::Around;
use crate::objects::amounts::count;
use crate::objects::resource_claim::MadeFor;
use crate::objects::{PodFacts, ResourceClaimFacts};

/// The amount that a claim counts of an extended resource; none if the pod counts all of it.
pub(super) fn of_extended(
    claim: &ResourceClaimFacts,
    resource: &str,
    all: &[ResourceClaimFacts],
    around: Around<'_>,
    now: Timestamp,
) -> Option<Quantity> {
    let is_for = |class: &str| around.classes.iter().any(|of| of.name == *class && of.has(resource));
    // Of several classes with this resource upstream takes the one that comes last.
    let devices = claim.devices.iter().filter(|(class, _)| is_for(class)).map(|(_, number)| *number).max()?;
    let made_for = claim.made_for.as_deref();
    let pod = made_for.and_then(|made_for| pod_of(made_for, all, around.pods)).filter(|pod| pod.counts(now));
    let of_pod = pod.and_then(|pod| pod.charge.request(resource));
    // Extended resources are whole numbers.
    let of_pod = of_pod.map_or(0, |amount| amount.milli_value() / 1000);
    let left = devices.saturating_sub(of_pod);
    (left > 0).then(|| count(left))
}

/// The pod for which a claim was made. Until the pod says which claim that is, it is the first one.
fn pod_of<'a>(made_for: &MadeFor, all: &[ResourceClaimFacts], pods: &'a [PodFacts]) -> Option<&'a PodFacts> {
    let is_it = |pod: &&PodFacts| pod.extended.as_ref().is_some_and(|extended| extended.uid == made_for.pod);
    let pod = pods.iter().find(is_it)?;
    let is_its = if let Some(claim) = &pod.extended.as_ref()?.claim {
        *claim == made_for.claim
    } else {
        let others = all.iter().filter_map(|claim| claim.made_for.as_deref());
        let order = |made_for: &MadeFor| (made_for.creation, made_for.claim.clone());
        others.filter(|other| other.pod == made_for.pod).all(|other| order(other) >= order(made_for))
    };
    is_its.then_some(pod)
}
