//! The needs of one StatefulSet's pods for claims: those that are missing, and the owners of those there are.
//!
//! Left out: whether a pod is made or changed at all, which is [`super`]'s.
//!
//! Upstream: `pkg/controller/statefulset/stateful_pod_control.go`.

use std::sync::Arc;

use shared::api::object::Key;

use super::stateful_set_utils::{
    OwnerChange, PodIdentity, claim_name, has_stale_pod, has_unexpected_controller, is_claim_owner_up_to_date,
    owner_change,
};
use crate::objects::Retention;
use crate::objects::claim::PersistentVolumeClaim;
use crate::observe::Observed;

/// The writes that the claims of one pod need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimWork {
    /// The claims to make.
    pub create: Vec<NewClaim>,
    /// The claims that are on their way out: until they are gone the pod can have none of their names.
    pub being_deleted: Vec<Key>,
    /// The claims that somebody else manages, which is told.
    pub conflicting: Vec<Key>,
    /// The claims whose owners change.
    pub owners: Vec<OwnerChange>,
}

impl ClaimWork {
    /// Whether there is nothing to write and nothing to tell.
    pub fn is_empty(&self) -> bool {
        let Self { create, being_deleted, conflicting, owners } = self;
        create.is_empty() && being_deleted.is_empty() && conflicting.is_empty() && owners.is_empty()
    }
}

/// A claim that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClaim {
    /// Its namespace and name.
    pub key: Key,
    /// The place of its template in the spec.
    pub template: usize,
}

impl Observed {
    fn claim_key(&self, template: &str, ordinal: i64) -> Key {
        let meta = &self.set.metadata;
        Key::new(meta.namespace(), &claim_name(template, meta.name(), ordinal))
    }

    /// The claims there are of a pod, in the order of their templates.
    fn claims_of(&self, ordinal: i64) -> impl Iterator<Item = &Arc<PersistentVolumeClaim>> {
        let templates = self.set.spec.volume_claim_templates.iter();
        templates.filter_map(move |template| self.claims.get(self.claim_key(&template.name, ordinal).name()))
    }

    /// The claim that a pod of the name before has left, and that goes before the pod can be made.
    ///
    /// Upstream: `PodClaimIsStale`.
    pub fn stale_claim(&self, pod: &PodIdentity) -> Option<&Arc<PersistentVolumeClaim>> {
        if self.set.spec.claim_retention.when_scaled == Retention::Retain {
            return None;
        }
        self.claims_of(pod.ordinal).find(|claim| has_stale_pod(claim, pod))
    }

    /// Whether all claims of a pod that are there have the owners of the retention policy.
    ///
    /// Upstream: `ClaimsMatchRetentionPolicy`.
    pub fn claims_match_retention_policy(&self, pod: &PodIdentity) -> bool {
        self.claims_of(pod.ordinal).all(|claim| is_claim_owner_up_to_date(claim, &self.set, pod))
    }

    /// Adds the claims that are missing.
    ///
    /// Upstream: `createPersistentVolumeClaims`.
    pub fn plan_missing_claims(&self, pod: &PodIdentity, work: &mut ClaimWork) {
        for (at, template) in self.set.spec.volume_claim_templates.iter().enumerate() {
            let key = self.claim_key(&template.name, pod.ordinal);
            match self.claims.get(key.name()) {
                None => work.create.push(NewClaim { key, template: at }),
                Some(claim) if claim.metadata.is_being_deleted() => work.being_deleted.push(key),
                Some(_) => {}
            }
        }
    }

    /// Adds the changes of owners, and tells of claims that somebody else manages.
    ///
    /// Upstream: `UpdatePodClaimForRetentionPolicy`.
    pub fn plan_claim_owners(&self, pod: &PodIdentity, work: &mut ClaimWork) {
        for claim in self.claims_of(pod.ordinal) {
            if has_unexpected_controller(claim, &self.set, pod) {
                work.conflicting.push(claim.metadata.key.clone());
            }
            if !is_claim_owner_up_to_date(claim, &self.set, pod) {
                work.owners.push(owner_change(claim, &self.set, pod));
            }
        }
    }
}
