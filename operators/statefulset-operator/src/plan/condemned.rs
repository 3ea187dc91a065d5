//! The pods that are not asked for, and their claims.

use super::Wait;
use super::claim_owners::PodIdentity;
use super::claim_work::ClaimWork;
use super::places::Known;
use super::reasons::{Until, Why};
use super::step::{ClaimsOfPod, Deletion, Step};
use crate::objects::pod::Pod;

/// Before a pod is deleted, its claims get the owners by which they are deleted with it, or stay.
pub(super) fn own_claims(known: &Known<'_>) -> Vec<Step> {
    let identities = known.places.condemned.iter().map(|pod| PodIdentity::of(pod));
    let differing = identities.filter(|identity| !known.observed.claims_match_retention_policy(identity));
    let step = |identity: PodIdentity| {
        let claims = ClaimWork::of(known.observed, &identity, false, true);
        Step::SetClaimOwners(ClaimsOfPod { pod: identity.key, claims, why: Why::Condemned })
    };
    differing.map(step).collect()
}

/// The highest ordinal is deleted first, and the next one once it is gone. A pod that is not available is deleted only if
/// it is the only such one. None if there is no pod to delete.
///
/// Upstream: `processCondemned`, `pkg/controller/statefulset/stateful_set_control.go`.
pub(super) fn delete_highest(known: &Known<'_>) -> Option<Result<Step, Wait>> {
    let pod = known.places.condemned.first()?;
    let is_first_unavailable = known.first_unavailable() == Some(pod.metadata.uid);
    Some(match known.obstacle(pod).filter(|until| *until == Until::Gone || !is_first_unavailable) {
        Some(until) => Err(Wait::on(pod, until)),
        None => Ok(delete(pod)),
    })
}

/// All of them at once.
pub(super) fn delete_all(known: &Known<'_>) -> Vec<Step> {
    known.places.condemned.iter().filter(|pod| !pod.metadata.is_being_deleted()).map(|pod| delete(pod)).collect()
}

fn delete(pod: &Pod) -> Step {
    Step::Delete(Deletion::of(pod, Why::Condemned))
}
