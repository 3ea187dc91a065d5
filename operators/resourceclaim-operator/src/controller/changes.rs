//! Which claims, pods and PodGroups are synced when one of them or a template changes.
//!
//! Each kind has a queue of its own, so a change that concerns several of them has a function for each.

use std::collections::BTreeSet;

use shared::api::object::{Key, Meta, Object};
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::claim::ResourceClaim;
use crate::objects::pod::Pod;
use crate::objects::pod_group::PodGroup;
use crate::objects::template::ResourceClaimTemplate;
use crate::observe::Caches;

/// Any change may add a user that is gone already.
///
/// Upstream: `enqueueResourceClaim`, `pkg/controller/resourceclaim/controller.go`.
pub fn claim_changed(change: Change<'_, ResourceClaim>) -> Vec<Effect> {
    let Meta { key, uid, .. } = &change.latest().metadata;
    vec![match change {
        Change::Added(_) | Change::Updated { .. } => enqueue(key.clone()),
        Change::Deleted(_) => Effect::Forget(key.clone(), *uid),
    }]
}

/// A pod's claims never change, so only what was recorded of them and its node count. Whether it has ended is asked by
/// its claims.
///
/// Upstream: `enqueuePod` and `podNeedsWork`, `pkg/controller/resourceclaim/controller.go`.
pub fn pod_changed(change: Change<'_, Pod>) -> Vec<Effect> {
    let due = match change {
        Change::Added(pod) => Some(pod),
        Change::Updated { old, new } => {
            let is_news = old.recorded != new.recorded || old.is_scheduled != new.is_scheduled;
            Some(new).filter(|_| is_news)
        }
        Change::Deleted(last) => return vec![Effect::Forget(last.metadata.key.clone(), last.metadata.uid)],
    };
    due.filter(|pod| pod.may_need_claims()).map(|pod| enqueue(pod.metadata.key.clone())).into_iter().collect()
}

/// Upstream: `enqueuePodGroup` and `podGroupNeedsWork`, `pkg/controller/resourceclaim/controller.go`.
pub fn group_changed(change: Change<'_, PodGroup>) -> Vec<Effect> {
    if let Change::Deleted(last) = change {
        return vec![Effect::Forget(last.metadata.key.clone(), last.metadata.uid)];
    }
    let due = news_of_group(change).filter(|group| may_need_claims(group));
    due.map(|group| enqueue(group.metadata.key.clone())).into_iter().collect()
}

fn news_of_group(change: Change<'_, PodGroup>) -> Option<&PodGroup> {
    match change {
        Change::Added(group) => Some(group),
        Change::Updated { old, new } => Some(&**new).filter(|_| old.recorded != new.recorded),
        Change::Deleted(_) => None,
    }
}

fn may_need_claims(group: &PodGroup) -> bool {
    !group.entries.is_empty() && !group.metadata.is_being_deleted()
}

impl Caches {
    /// The claims that a pod uses: those that it names, and those that were made for it, which its status may not name
    /// yet.
    fn claims_used_by(&self, pod: &Pod) -> BTreeSet<Key> {
        let made = self.claims_of(pod).into_iter().map(|claim| claim.metadata.key.clone());
        pod.claim_keys().chain(made).collect()
    }

    /// Remembers that a pod is gone, for the claims that are synced next.
    pub fn note_deleted_pod(&self, change: Change<'_, Pod>) {
        if let Change::Deleted(pod) = change {
            self.deleted.note(pod.metadata.uid, self.claims_used_by(pod));
        }
    }

    /// Remembers that a PodGroup is gone, for the claims that are synced next.
    pub fn note_deleted_group(&self, change: Change<'_, PodGroup>) {
        if let Change::Deleted(group) = change {
            self.deleted.note(group.metadata.uid, group.claim_keys());
        }
    }

    /// The claims of a pod that has ended or is gone.
    ///
    /// Upstream: `enqueuePod` and `podNeedsClaims`, `pkg/controller/resourceclaim/controller.go`.
    pub fn claims_of_ended_pod(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let ended = match change {
            Change::Deleted(last) => Some(last),
            Change::Added(pod) => Some(pod).filter(|pod| pod.is_done()),
            Change::Updated { old, new } => Some(new).filter(|new| {
                let is_known =
                    old.is_done() && old.recorded == new.recorded && old.extended_claim == new.extended_claim;
                new.is_done() && !is_known
            }),
        };
        ended.map_or_else(Vec::new, |pod| all(self.claims_used_by(pod)))
    }

    /// The claims of a PodGroup that is gone.
    pub fn claims_of_deleted_group(&self, change: Change<'_, PodGroup>) -> Vec<Effect> {
        let Change::Deleted(group) = change else { return Vec::new() };
        all(group.claim_keys())
    }

    /// The pods whose claim came or went, and those with a node that may have to reserve it.
    ///
    /// Upstream: `enqueueResourceClaim`, `pkg/controller/resourceclaim/controller.go`.
    pub fn pods_of_changed_claim(&self, change: Change<'_, ResourceClaim>) -> Vec<Effect> {
        let claim = change.latest();
        let needs_node = match change {
            Change::Added(_) | Change::Deleted(_) => false,
            Change::Updated { old, new } => {
                if old.is_allocated == new.is_allocated && old.reserved_for == new.reserved_for {
                    return Vec::new();
                }
                true
            }
        };
        let mut pods = self.pods_with_claim(&claim.metadata.key);
        let controller = claim.metadata.controller.as_deref();
        let owner =
            controller.and_then(|owner| self.pods.get_with_uid(claim.metadata.namespace(), &owner.name, owner.uid));
        pods.extend(owner);
        let due = pods.into_iter().filter(|pod| pod.may_need_claims() && (pod.is_scheduled || !needs_node));
        all(due.map(|pod| pod.metadata.key.clone()))
    }

    /// The PodGroups whose claim came or went.
    pub fn groups_of_changed_claim(&self, change: Change<'_, ResourceClaim>) -> Vec<Effect> {
        let claim = match change {
            Change::Added(claim) | Change::Deleted(claim) => claim,
            Change::Updated { .. } => return Vec::new(),
        };
        let groups = self.groups_with_claim(&claim.metadata.key).into_iter();
        let due = groups.filter(|group| may_need_claims(group));
        all(due.map(|group| group.metadata.key.clone()))
    }

    /// The pods that a new template is for.
    ///
    /// Upstream: `enqueueResourceClaimTemplate`, `pkg/controller/resourceclaim/controller.go`.
    pub fn pods_of_new_template(&self, change: Change<'_, ResourceClaimTemplate>) -> Vec<Effect> {
        let Change::Added(template) = change else { return Vec::new() };
        let pods = self.pods_with_template(&template.meta().key).into_iter();
        all(pods.filter(|pod| pod.may_need_claims()).map(|pod| pod.metadata.key.clone()))
    }

    /// The PodGroups that a new template is for.
    pub fn groups_of_new_template(&self, change: Change<'_, ResourceClaimTemplate>) -> Vec<Effect> {
        let Change::Added(template) = change else { return Vec::new() };
        let groups = self.groups_with_template(&template.meta().key).into_iter();
        all(groups.filter(|group| may_need_claims(group)).map(|group| group.metadata.key.clone()))
    }

    /// The pods of a PodGroup that is new, or has new claims: they record and reserve these too.
    ///
    /// Upstream: `enqueuePodGroup`, `pkg/controller/resourceclaim/controller.go`.
    pub fn pods_of_changed_group(&self, change: Change<'_, PodGroup>) -> Vec<Effect> {
        let Some(group) = news_of_group(change) else { return Vec::new() };
        let pods = self.pods_of_group(&group.metadata.key).into_iter();
        all(pods.filter(|pod| pod.may_need_claims()).map(|pod| pod.metadata.key.clone()))
    }
}

fn all(keys: impl IntoIterator<Item = Key>) -> Vec<Effect> {
    let keys: BTreeSet<Key> = keys.into_iter().collect();
    keys.into_iter().map(enqueue).collect()
}

fn enqueue(key: Key) -> Effect {
    Effect::Enqueue(key, Cause::Event)
}
