//! The owners that the retention policy gives to the claims of a pod.
//!
//! Upstream: `pkg/controller/statefulset/stateful_set_utils.go`.

use std::collections::BTreeSet;

use shared::api::object::{Key, Kind, ResourceVersion, Uid};
use shared::api::owner::Owner;
use shared::api::resource::PODS;

use crate::objects::claim::{ClaimOwner, PersistentVolumeClaim};
use crate::objects::names::ordinal;
use crate::objects::pod::Pod;
use crate::objects::{Retention, STATEFUL_SETS, StatefulSet};

/// A pod as the owner of claims. One that is not made yet has no uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    pub key: Key,
    pub uid: Option<Uid>,
    pub ordinal: i64,
}

impl PodIdentity {
    pub fn of(pod: &Pod) -> Self {
        Self { key: pod.metadata.key.clone(), uid: Some(pod.metadata.uid), ordinal: ordinal(pod) }
    }

    fn is_one_too_many(&self, set: &StatefulSet) -> bool {
        !set.spec.ordinals().contains(&self.ordinal)
    }

    /// Upstream: `matchesRef`.
    fn is_named_by(&self, owner: &ClaimOwner) -> bool {
        owner.api_version == *"v1" && owner.kind == *PODS.kind && owner.name == *self.key.name()
    }

    fn is_owner_of(&self, claim: &PersistentVolumeClaim) -> bool {
        self.uid.is_some_and(|uid| is_owned_by(claim, uid))
    }
}

/// Upstream: `matchesRef`.
fn names_set(set: &StatefulSet, owner: &ClaimOwner) -> bool {
    owner.api_version == *"apps/v1" && owner.kind == *STATEFUL_SETS.kind && owner.name == *set.metadata.name()
}

/// Upstream: `hasOwnerRef`.
fn is_owned_by(claim: &PersistentVolumeClaim, uid: Uid) -> bool {
    claim.owners.iter().any(|owner| owner.uid == uid)
}

/// Whether another pod of this name owned the claim. A pod that is not made yet is another one than any.
///
/// Upstream: `hasStaleOwnerRef`.
pub fn has_stale_pod(claim: &PersistentVolumeClaim, pod: &PodIdentity) -> bool {
    let named = claim.owners.iter().find(|owner| pod.is_named_by(owner));
    named.is_some_and(|owner| Some(owner.uid) != pod.uid)
}

/// Whether another StatefulSet of this name owned the claim.
///
/// Upstream: `hasStaleOwnerRef`.
pub fn has_stale_set(claim: &PersistentVolumeClaim, set: &StatefulSet) -> bool {
    let named = claim.owners.iter().find(|owner| names_set(set, owner));
    named.is_some_and(|owner| owner.uid != set.metadata.uid)
}

/// Whether another controller manages a claim that may be deleted some day.
///
/// Upstream: `hasUnexpectedController`.
pub fn has_unexpected_controller(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &PodIdentity) -> bool {
    let is_unexpected = |owner: &ClaimOwner| {
        if names_set(set, owner) {
            owner.uid != set.metadata.uid
        } else if pod.is_named_by(owner) {
            Some(owner.uid) != pod.uid
        } else {
            owner.is_controller
        }
    };
    !set.spec.claim_retention.retains_all() && claim.owners.iter().any(is_unexpected)
}

/// Whether the set or the pod owns the claim without being its controller.
///
/// Upstream: `hasNonControllerOwner`.
pub fn has_non_controller_owner(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &PodIdentity) -> bool {
    let is_ours = |owner: &ClaimOwner| owner.uid == set.metadata.uid || Some(owner.uid) == pod.uid;
    claim.owners.iter().any(|owner| is_ours(owner) && !owner.is_controller)
}

/// The owner that the retention policy gives to a claim; none if it is retained.
fn wanted_owner(set: &StatefulSet, pod: &PodIdentity) -> Option<Owner> {
    let retention = set.spec.claim_retention;
    let of_pod = || {
        let (key, uid) = (pod.key.clone(), pod.uid?);
        Some(Owner { resource: PODS, key, uid, being_deleted: false })
    };
    match (retention.when_scaled, retention.when_deleted, pod.is_one_too_many(set)) {
        (Retention::Delete, _, true) => of_pod(),
        (Retention::Retain, Retention::Delete, _) | (Retention::Delete, Retention::Delete, false) => Some(set.owner()),
        (Retention::Retain, Retention::Retain, _) | (Retention::Delete, Retention::Retain, false) => None,
    }
}

/// Whether the claim has the owners that the retention policy gives it, or is in a state that must not be touched.
///
/// Upstream: `isClaimOwnerUpToDate`.
pub fn is_claim_owner_up_to_date(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &PodIdentity) -> bool {
    if has_stale_set(claim, set) || has_stale_pod(claim, pod) {
        return true;
    }
    let (is_of_set, is_of_pod) = (is_owned_by(claim, set.metadata.uid), pod.is_owner_of(claim));
    if has_unexpected_controller(claim, set, pod) {
        // Of two controllers ours is one too many.
        return !is_of_set && !is_of_pod;
    }
    if has_non_controller_owner(claim, set, pod) {
        return false;
    }
    let retention = set.spec.claim_retention;
    let is_one_too_many = pod.is_one_too_many(set);
    let wants_pod = retention.when_scaled == Retention::Delete && is_one_too_many;
    let wants_set = retention.when_deleted == Retention::Delete && !wants_pod;
    (is_of_set, is_of_pod) == (wants_set, wants_pod)
}

/// A change of the owners of one claim, refused by the server if the claim is another one or was changed meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerChange {
    pub claim: Key,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    pub remove: BTreeSet<Uid>,
    /// The owner that comes, as the controller. If it is one already, it becomes the controller.
    pub add: Option<Owner>,
}

/// The change that gives the claim the owners of the retention policy.
///
/// Upstream: `updateClaimOwnerRefForSetAndPod`.
pub fn owner_change(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &PodIdentity) -> OwnerChange {
    let add = if has_unexpected_controller(claim, set, pod) { None } else { wanted_owner(set, pod) };
    let ours = claim.owners.iter().filter(|owner| names_set(set, owner) || pod.is_named_by(owner));
    let added = add.as_ref().map(|owner| owner.uid);
    let meta = &claim.metadata;
    OwnerChange {
        claim: meta.key.clone(),
        uid: meta.uid,
        resource_version: meta.resource_version,
        remove: ours.map(|owner| owner.uid).filter(|uid| Some(*uid) != added).collect(),
        add,
    }
}
