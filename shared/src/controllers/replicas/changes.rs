//! The effects of a change of an owner or of a pod.
//!
//! Left out: carrying it out, which is [`crate::working::effect::Effects`]'.

use std::sync::Arc;
use std::time::Duration;

use super::ReplicaOwner;
use super::observe::Caches;
use super::pod::Pod;
use super::status::MIN_READY;
use crate::api::labels::Labels;
use crate::following::cache::Change;
use crate::working::effect::Effect;
use crate::working::queue::Cause;

/// The effects of a change of an owner.
///
/// Upstream: `addRS`, `updateRS` and `deleteRS`, `pkg/controller/replicaset/replica_set.go`.
pub fn owner_changed<T: ReplicaOwner>(change: Change<'_, T>) -> Vec<Effect> {
    Effect::of_owner(change)
}

impl<T: ReplicaOwner> Caches<T> {
    /// The effects of a change of a pod.
    ///
    /// Upstream: `addPod`, `updatePod` and `deletePod`, `pkg/controller/replicaset/replica_set.go`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        match change {
            // A pod that is first seen on its way out was not made for the expectations of today.
            Change::Added(pod) if pod.metadata.is_being_deleted() => self.pod_deleted(pod),
            Change::Added(pod) => self.pod_added(pod),
            Change::Updated { old, new } if old.is_alike(new) => Vec::new(),
            Change::Updated { old, new } => self.pod_updated(old, new),
            Change::Deleted(pod) => self.pod_deleted(pod),
        }
    }

    fn selecting(&self, orphan: &Pod) -> Vec<Effect> {
        let selects = |owner: &T, labels: &Labels| !owner.spec().selects_everything() && owner.spec().selects(labels);
        self.claims.selecting(orphan, selects).iter().map(enqueue).collect()
    }

    fn pod_added(&self, pod: &Pod) -> Vec<Effect> {
        if pod.metadata.controller.is_none() {
            return self.selecting(pod);
        }
        self.claims
            .resolve(pod)
            .map_or_else(Vec::new, |owner| vec![Effect::CreationObserved(owner.meta().key.clone()), enqueue(&owner)])
    }

    fn pod_updated(&self, old: &Pod, new: &Pod) -> Vec<Effect> {
        let relabelled = old.metadata.labels != new.metadata.labels;
        if new.metadata.is_being_deleted() {
            let mut effects = self.pod_deleted(new);
            if relabelled {
                effects.extend(self.pod_deleted(old));
            }
            return effects;
        }
        let (before, now) = (old.metadata.controller.as_ref(), new.metadata.controller.as_ref());
        let mut effects = Vec::new();
        if before != now {
            effects.extend(self.claims.resolve(old).map(|owner| enqueue(&owner)));
        }
        if now.is_none() {
            if relabelled || before != now {
                effects.extend(self.selecting(new));
            }
            return effects;
        }
        let Some(owner) = self.claims.resolve(new) else { return effects };
        effects.push(enqueue(&owner));
        let min_ready = u64::try_from(owner.spec().min_ready_seconds).unwrap_or(0);
        if !old.readiness.is_ready() && new.readiness.is_ready() && min_ready > 0 {
            let delay = Duration::from_secs(min_ready);
            effects.push(Effect::EnqueueAfter(owner.meta().key.clone(), delay, MIN_READY));
        }
        effects
    }

    fn pod_deleted(&self, pod: &Pod) -> Vec<Effect> {
        self.claims.resolve(pod).map_or_else(Vec::new, |owner| {
            let key = owner.meta().key.clone();
            vec![Effect::DeletionObserved(key, pod.metadata.uid), enqueue(&owner)]
        })
    }
}

fn enqueue<T: ReplicaOwner>(owner: &Arc<T>) -> Effect {
    Effect::Enqueue(owner.meta().key.clone(), Cause::Event)
}

#[cfg(test)]
mod tests;
