//! The writes that the volume claims of a pod need: missing ones, and the owners of others.
//!
//! Upstream: `pkg/controller/statefulset/stateful_pod_control.go`.

use std::sync::Arc;

use shared::api::object::Key;

use super::claim_owners::{
    OwnerChange, PodIdentity, has_stale_pod, has_unexpected_controller, is_claim_owner_up_to_date, owner_change,
};
use crate::objects::Retention;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::names::claim_name;
use crate::observe::Observed;

/// The writes that the claims of one pod need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimWork {
    pub create: Vec<NewClaim>,
    /// The claims that are on their way out: until they are gone the pod can have none of their names.
    pub being_deleted: Vec<Key>,
    /// The claims that another controller manages, for an event.
    pub conflicting: Vec<Key>,
    /// The claims whose owners change.
    pub owners: Vec<OwnerChange>,
}

impl ClaimWork {
    /// The writes for one pod: missing claims if it `creates` them, and changes of owners if it `owns` them.
    ///
    /// Upstream: `createPersistentVolumeClaims` and `UpdatePodClaimForRetentionPolicy`.
    pub fn of(observed: &Observed, pod: &PodIdentity, creates: bool, owns: bool) -> Self {
        let mut work = Self::default();
        let templates = observed.set.spec.volume_claim_templates.iter().enumerate().filter(|_| creates);
        for (template, of) in templates {
            let key = observed.claim_key(&of.name, pod.ordinal);
            match observed.claims.get(key.name()) {
                None => work.create.push(NewClaim { key, template }),
                Some(claim) if claim.metadata.is_being_deleted() => work.being_deleted.push(key),
                Some(_) => {}
            }
        }
        for claim in observed.claims_of(pod.ordinal).filter(|_| owns) {
            if has_unexpected_controller(claim, &observed.set, pod) {
                work.conflicting.push(claim.metadata.key.clone());
            }
            if !is_claim_owner_up_to_date(claim, &observed.set, pod) {
                work.owners.push(owner_change(claim, &observed.set, pod));
            }
        }
        work
    }

    /// Whether there is nothing to write and nothing to tell.
    pub fn is_empty(&self) -> bool {
        let Self { create, being_deleted, conflicting, owners } = self;
        create.is_empty() && being_deleted.is_empty() && conflicting.is_empty() && owners.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClaim {
    pub key: Key,
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
}
