//! The effects of a change of a DaemonSet, of a pod, of a revision or of a node.
//!
//! A kubelet writes its Node every few minutes: only labels and taints matter here. Left out: the DaemonSets that a new
//! or changed node concerns. The sync of the node finds them.
//!
//! Upstream: the handlers in `NewDaemonSetsController`, `pkg/controller/daemon/daemon_controller.go`.

use std::sync::Arc;
use std::time::Duration;

use shared::api::labels::Labels;
use shared::api::object::Meta;
use shared::controllers::revisions::ControllerRevision;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::DaemonSet;
use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::observe::Caches;
use crate::plan::nodes::bereft;
use crate::status::MIN_READY;

fn enqueue(set: &Arc<DaemonSet>) -> Effect {
    Effect::Enqueue(set.metadata.key.clone(), Cause::Event)
}

/// Upstream: `addDaemonset`, `updateDaemonset` and `deleteDaemonset`.
pub fn daemon_set_changed(change: Change<'_, DaemonSet>) -> Vec<Effect> {
    Effect::of_owner(change)
}

/// Upstream: `addNode` and `updateNode`.
pub fn node_changed(change: Change<'_, Node>) -> Vec<Effect> {
    match change {
        Change::Updated { old, new } if old.is_alike(new) => Vec::new(),
        Change::Added(node) | Change::Updated { old: _, new: node } => {
            vec![Effect::Enqueue(node.metadata.key.clone(), Cause::Event)]
        }
        Change::Deleted(_) => Vec::new(),
    }
}

impl Caches {
    /// Upstream: `addPod`, `updatePod` and `deletePod`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        match change {
            Change::Added(pod) if pod.metadata.is_being_deleted() => self.pod_deleted(pod),
            Change::Added(pod) if pod.metadata.controller.is_none() => self.selecting(&pod.metadata),
            Change::Added(pod) => self
                .owners
                .resolve(pod)
                .map_or_else(Vec::new, |set| vec![Effect::CreationObserved(set.metadata.key.clone()), enqueue(&set)]),
            Change::Updated { old, new } if old.is_alike(new) => Vec::new(),
            Change::Updated { old: _, new } if new.metadata.is_being_deleted() => self.pod_deleted(new),
            Change::Updated { old, new } => self.pod_updated(old, new),
            Change::Deleted(pod) => self.pod_deleted(pod),
        }
    }

    fn pod_updated(&self, old: &Pod, new: &Pod) -> Vec<Effect> {
        let mut effects = self.owned_changed(&old.metadata, &new.metadata);
        let Some(set) = self.owners.resolve(new) else { return effects };
        let min_ready = u64::try_from(set.spec.min_ready_seconds).unwrap_or(0);
        if !old.readiness.is_ready() && new.readiness.is_ready() && min_ready > 0 {
            let delay = Duration::from_secs(min_ready);
            effects.push(Effect::EnqueueAfter(set.metadata.key.clone(), delay, MIN_READY));
        }
        effects
    }

    fn pod_deleted(&self, pod: &Pod) -> Vec<Effect> {
        self.owners.resolve(pod).map_or_else(Vec::new, |set| {
            vec![Effect::DeletionObserved(set.metadata.key.clone(), pod.metadata.uid), enqueue(&set)]
        })
    }

    /// The owner of before, and the owner of now or those that may become it.
    fn owned_changed<A>(&self, old: &Meta<A>, new: &Meta<A>) -> Vec<Effect> {
        let has_other_owner = old.controller != new.controller;
        let mut effects = Vec::new();
        if has_other_owner {
            effects.extend(self.owners.owner_of(old).iter().map(enqueue));
        }
        if new.controller.is_some() {
            effects.extend(self.owners.owner_of(new).iter().map(enqueue));
        } else if has_other_owner || old.labels != new.labels {
            effects.extend(self.selecting(new));
        }
        effects
    }

    /// Upstream: `addHistory`, `updateHistory` and `deleteHistory`.
    pub fn revision_changed(&self, change: Change<'_, ControllerRevision>) -> Vec<Effect> {
        match change {
            Change::Added(revision) if revision.metadata.is_being_deleted() => self.owner_of(&revision.metadata),
            // It is as the owner made it.
            Change::Added(revision) if revision.metadata.controller.is_some() => Vec::new(),
            Change::Added(revision) => self.selecting(&revision.metadata),
            Change::Updated { old, new } => self.owned_changed(&old.metadata, &new.metadata),
            Change::Deleted(revision) => self.owner_of(&revision.metadata),
        }
    }

    /// A node that is gone counts no more, and nobody else deletes a pod that was pinned to it and never bound.
    /// Upstream finds out at the next event or resync.
    pub fn node_lost(&self, change: Change<'_, Node>) -> Vec<Effect> {
        match change {
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
            Change::Deleted(node) => {
                let bereft = bereft(&self.beside(Arc::clone(node)));
                bereft.into_iter().map(|set| Effect::Enqueue(set, Cause::Event)).collect()
            }
        }
    }

    fn owner_of<A>(&self, meta: &Meta<A>) -> Vec<Effect> {
        self.owners.owner_of(meta).iter().map(enqueue).collect()
    }

    /// One that would select everything selects nothing.
    ///
    /// Upstream: `GetPodDaemonSets` and `GetHistoryDaemonSets`,
    /// `staging/src/k8s.io/client-go/listers/apps/v1/daemonset_expansion.go`.
    fn selecting<A>(&self, orphan: &Meta<A>) -> Vec<Effect> {
        let selects = |set: &DaemonSet, labels: &Labels| !set.spec.selects_everything() && set.spec.selects(labels);
        self.owners.adopters_of(orphan, selects).iter().map(enqueue).collect()
    }
}
