//! What is known of owners and their pods, and what a change of one of them means to whom.
//!
//! Left out: filling the caches, which is the informers', and what is read for one sync, which each operator's
//! `observe.rs` says.

use std::sync::Arc;
use std::time::Duration;

use super::ReplicaOwner;
use super::pod::Pod;
use crate::api::intern::Text;
use crate::api::object::{ControllerRef, Key, Uid};
use crate::runtime::cache::{Cache, Change, IndexId, IndexValue};
use crate::runtime::control::Control;
use crate::runtime::expectations::Expectations;
use crate::runtime::informer::{Informer, InformerBuilder};
use crate::runtime::queue::{Cause, Queue};

/// The caches of one operator.
pub struct Caches<T> {
    /// The owners.
    pub owners: Arc<Cache<T>>,
    /// The pods of all owners, and everybody else's.
    pub pods: Arc<Cache<Pod>>,
    owners_by_namespace: IndexId,
    owners_by_controller: IndexId,
    pods_by_controller: IndexId,
}

/// What follows from a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An owner's key is to be synced.
    Enqueue(Key, Cause),
    /// It is to be synced after a while, for its pods may be available by then.
    EnqueueAfter(Key, Duration),
    /// One of the pods it waits for has appeared.
    CreationObserved(Key),
    /// A pod is gone or about to go; it may have waited for that.
    DeletionObserved(Key, Uid),
    /// The owner of this uid is gone: nothing that was expected of it counts any more.
    Forget(Key, Uid),
}

impl<T: ReplicaOwner> Caches<T> {
    /// Empty caches, and the informers that fill them.
    pub fn new() -> (Self, Informer<T>, Informer<Pod>) {
        let (mut owners, mut pods) = (InformerBuilder::<T>::new(), InformerBuilder::<Pod>::new());
        let owners_by_namespace = owners.index_by_namespace();
        let owners_by_controller = owners.index_by_controller();
        let pods_by_controller = pods.index_by_controller();
        let (owners, pods) = (owners.build(), pods.build());
        let caches = Self {
            owners: owners.cache(),
            pods: pods.cache(),
            owners_by_namespace,
            owners_by_controller,
            pods_by_controller,
        };
        (caches, owners, pods)
    }

    /// The pods whose controller is this owner, and those of its namespace that have none.
    ///
    /// Upstream: `FilterPodsByOwner`, `pkg/controller/controller_utils.go`.
    pub fn pods_of(&self, owner: &T) -> Vec<Arc<Pod>> {
        let mut pods = self.pods.controlled_by(self.pods_by_controller, owner);
        pods.extend(self.pods.orphans(self.pods_by_controller, owner.meta().namespace()));
        pods
    }

    /// The pods of all owners under the same controller, this one's included; none if it has no controller.
    ///
    /// Upstream takes every pod of the namespace that one of their selectors matches; here it must also be controlled by
    /// one of them.
    ///
    /// Upstream: `getIndirectlyRelatedPods`, `pkg/controller/replicaset/replica_set.go`.
    pub fn related_pods(&self, owner: &T) -> Vec<Arc<Pod>> {
        let Some(controller) = owner.meta().controller_uid() else { return Vec::new() };
        let siblings = self.owners.by_index(self.owners_by_controller, &IndexValue::Uid(controller));
        let pods_of = |sibling: &Arc<T>| {
            let mut pods = self.pods.controlled_by(self.pods_by_controller, &**sibling);
            pods.retain(|pod| sibling.spec().selects(&pod.metadata.labels));
            pods
        };
        siblings.iter().flat_map(pods_of).collect()
    }

    /// Upstream: `resolveControllerRef`, `pkg/controller/replicaset/replica_set.go`.
    fn resolve(&self, pod: &Pod, controller: Option<&Arc<ControllerRef>>) -> Option<Arc<T>> {
        let controller = controller.filter(|controller| controller.kind == *T::RESOURCE.kind)?;
        self.owners.get_with_uid(pod.metadata.namespace(), &controller.name, controller.uid)
    }

    /// The owners that may adopt an orphan. Several are a mistake of their user.
    ///
    /// Upstream: `GetPodReplicaSets`, `staging/src/k8s.io/client-go/listers/apps/v1/replicaset_expansion.go`.
    fn selecting(&self, pod: &Pod) -> Vec<Effect> {
        let labels = &pod.metadata.labels;
        if labels.is_empty() {
            return Vec::new();
        }
        let namespace = IndexValue::Text(Text::new(pod.metadata.namespace()));
        let mut owners = self.owners.by_index(self.owners_by_namespace, &namespace);
        owners.retain(|owner| !owner.spec().selects_everything() && owner.spec().selects(labels));
        if owners.len() > 1 {
            tracing::warn!(pod = %pod.metadata.key, kind = %T::RESOURCE.kind, count = owners.len(), "several select one pod");
        }
        owners.iter().map(|owner| enqueue(owner)).collect()
    }

    /// What a change of an owner means.
    ///
    /// Upstream: `addRS`, `updateRS` and `deleteRS`, `pkg/controller/replicaset/replica_set.go`.
    pub fn owner_changed(&self, change: Change<'_, T>) -> Vec<Effect> {
        match change {
            Change::Added(owner) => vec![Effect::Enqueue(owner.meta().key.clone(), Cause::Edit)],
            Change::Updated { old, new } => {
                let edited = old.meta().generation != new.meta().generation;
                let cause = if edited { Cause::Edit } else { Cause::Event };
                vec![Effect::Enqueue(new.meta().key.clone(), cause)]
            }
            Change::Deleted(owner) => {
                let meta = owner.meta();
                vec![Effect::Forget(meta.key.clone(), meta.uid), enqueue(owner)]
            }
        }
    }

    /// What a change of a pod means.
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

    fn pod_added(&self, pod: &Pod) -> Vec<Effect> {
        if pod.metadata.controller.is_none() {
            return self.selecting(pod);
        }
        let owner = self.resolve(pod, pod.metadata.controller.as_ref());
        owner.map_or_else(Vec::new, |owner| vec![Effect::CreationObserved(owner.meta().key.clone()), enqueue(&owner)])
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
            effects.extend(self.resolve(old, before).map(|owner| enqueue(&owner)));
        }
        if now.is_none() {
            if relabelled || before != now {
                effects.extend(self.selecting(new));
            }
            return effects;
        }
        let Some(owner) = self.resolve(new, now) else { return effects };
        effects.push(enqueue(&owner));
        let min_ready = u64::try_from(owner.spec().min_ready_seconds).unwrap_or(0);
        if !old.readiness.is_ready() && new.readiness.is_ready() && min_ready > 0 {
            effects.push(Effect::EnqueueAfter(owner.meta().key.clone(), Duration::from_secs(min_ready)));
        }
        effects
    }

    fn pod_deleted(&self, pod: &Pod) -> Vec<Effect> {
        let owner = self.resolve(pod, pod.metadata.controller.as_ref());
        owner.map_or_else(Vec::new, |owner| {
            let key = owner.meta().key.clone();
            vec![Effect::DeletionObserved(key, pod.metadata.uid), enqueue(&owner)]
        })
    }
}

fn enqueue<T: ReplicaOwner>(owner: &Arc<T>) -> Effect {
    Effect::Enqueue(owner.meta().key.clone(), Cause::Event)
}

impl Effect {
    /// Makes it so.
    pub fn take(self, expectations: &Expectations, control: &Control, queue: &Queue) {
        match self {
            Self::Enqueue(key, cause) => queue.add(&key, cause),
            Self::EnqueueAfter(key, delay) => queue.add_after(&key, delay),
            Self::CreationObserved(key) => expectations.creations_observed(&key, 1),
            Self::DeletionObserved(key, uid) => expectations.deletion_observed(&key, uid),
            Self::Forget(key, uid) => {
                expectations.forget(&key);
                control.forget(&key, Some(uid));
            }
        }
    }
}

#[cfg(test)]
mod tests;
