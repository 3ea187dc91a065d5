//! The writes about one pod that is asked for: creation, replacement, and repair.
//!
//! Upstream: `processReplica`, `pkg/controller/statefulset/stateful_set_control.go`.

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::pod::Phase;
use shared::controllers::rejections::Held;

use super::Wait;
use super::claim_owners::PodIdentity;
use super::claim_work::ClaimWork;
use super::places::{Known, long_label};
use super::pods::{identity_matches, storage_matches};
use super::reasons::{Differences, Until, Why};
use super::step::{ClaimsOfPod, Deletion, NewPod, PodUpdate, Step};
use crate::objects::names::{ordinal, pod_name};
use crate::objects::pod::Pod;

/// Upstream: `newVersionedStatefulSetPod`, and `processReplica` for a pod that was not created.
pub(super) fn create(known: &Known<'_>, ordinal: i64) -> Result<Step, Wait> {
    let meta = &known.observed.set.metadata;
    let key = Key::new(meta.namespace(), &pod_name(meta.name(), ordinal));
    let revision = known.revision_of(ordinal).clone();
    if let Some(label) = long_label(key.name(), &revision) {
        return Err(Wait { pod: Text::new(key.name()), until: Until::Renamed(label) });
    }
    let pod = PodIdentity { key: key.clone(), uid: None, ordinal };
    if let Some(claim) = known.observed.stale_claim(&pod) {
        let claim = Text::new(claim.metadata.name());
        return Err(Wait { pod: Text::new(key.name()), until: Until::ClaimGone { claim } });
    }
    let claims = ClaimWork::of(known.observed, &pod, true, true);
    Ok(Step::Create(NewPod { key, ordinal, revision, claims, why: Why::Missing }))
}

/// Delete a pod that has ended; the next sync creates another one. A pod that its node has rejected stays while its
/// replacement waits; upstream replaces it at once. `under_way` is the number of pods that do not run yet.
pub(super) fn replace(known: &Known<'_>, pod: &Pod, under_way: usize) -> Result<Step, Wait> {
    if pod.metadata.is_being_deleted() {
        Err(Wait::on(pod, Until::Gone))
    } else if let Some(held) = held_back(known, pod, under_way) {
        Err(Wait::on(pod, Until::HeldBack { held }))
    } else {
        Ok(Step::Delete(Deletion::of(pod, Why::Ended(pod.phase))))
    }
}

/// Why the replacement of a rejected pod waits, if it does.
fn held_back(known: &Known<'_>, pod: &Pod, under_way: usize) -> Option<Held> {
    pod.rejection.as_ref()?;
    known.observed.rejections.allow(known.revision_of(ordinal(pod)), 1, under_way, known.now).1
}

/// The claims that a pending pod may wait for.
///
/// Upstream: `createMissingPersistentVolumeClaims`, `pkg/controller/statefulset/stateful_pod_control.go`.
pub(super) fn create_claims(known: &Known<'_>, pod: &Pod) -> Option<Step> {
    if pod.phase != Phase::Pending {
        return None;
    }
    let identity = PodIdentity::of(pod);
    let claims = ClaimWork::of(known.observed, &identity, true, true);
    (!claims.is_empty()).then_some(Step::CreateClaims(ClaimsOfPod { pod: identity.key, claims, why: Why::Pending }))
}

/// `has_claims` if another step covers the claims of the pod.
///
/// Upstream: the end of `processReplica`, and `UpdateStatefulPod`, `stateful_pod_control.go`.
pub(super) fn repair(known: &Known<'_>, pod: &Pod, has_claims: bool) -> Option<Step> {
    let (set, identity) = (&*known.observed.set, PodIdentity::of(pod));
    let differences = Differences {
        identity: !identity_matches(set, pod),
        storage: !storage_matches(set, pod),
        claim_owners: !has_claims && !known.observed.claims_match_retention_policy(&identity),
    };
    if differences == Differences::default() {
        return None;
    }
    let creates = differences.storage && !has_claims;
    let claims = ClaimWork::of(known.observed, &identity, creates, differences.claim_owners);
    let (meta, ordinal) = (&pod.metadata, identity.ordinal);
    Some(Step::Update(PodUpdate {
        key: Key::new(meta.namespace(), &pod_name(set.metadata.name(), ordinal)),
        uid: meta.uid,
        resource_version: meta.resource_version,
        ordinal,
        claims,
        differences,
        why: Why::Differs(differences),
    }))
}
