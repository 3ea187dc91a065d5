//! Which StatefulSets a change of a StatefulSet, of a pod or of a claim concerns.
//!
//! Left out: revisions. As in upstream, a change of one leads to no sync.

use std::sync::Arc;
use std::time::Duration;

use shared::api::labels::Labels;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::StatefulSet;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::pod::Pod;
use crate::observe::Caches;
use crate::status::MIN_READY;

fn enqueue(set: &Arc<StatefulSet>) -> Effect {
    Effect::Enqueue(set.metadata.key.clone(), Cause::Event)
}

/// Upstream: the handlers in `NewStatefulSetController`, `pkg/controller/statefulset/stateful_set.go`.
pub fn stateful_set_changed(change: Change<'_, StatefulSet>) -> Vec<Effect> {
    Effect::of_owner(change)
}

impl Caches {
    /// Upstream: `addPod`, `updatePod` and `deletePod`, `stateful_set.go`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        match change {
            Change::Added(pod) if pod.metadata.controller.is_some() || pod.metadata.is_being_deleted() => {
                self.owner_of(pod)
            }
            Change::Added(pod) => self.selecting(pod),
            Change::Updated { old, new } if old.is_alike(new) => Vec::new(),
            Change::Updated { old, new } => self.pod_updated(old, new),
            // The deletion of an orphan concerns no StatefulSet.
            Change::Deleted(pod) => self.owner_of(pod),
        }
    }

    fn pod_updated(&self, old: &Pod, new: &Pod) -> Vec<Effect> {
        let has_other_owner = old.metadata.controller != new.metadata.controller;
        let mut effects = if has_other_owner { self.owner_of(old) } else { Vec::new() };
        if new.metadata.controller.is_none() {
            if has_other_owner || old.metadata.labels != new.metadata.labels {
                effects.extend(self.selecting(new));
            }
            return effects;
        }
        let Some(set) = self.owners.resolve(new) else { return effects };
        effects.push(enqueue(&set));
        let min_ready = u64::try_from(set.spec.min_ready_seconds).unwrap_or(0);
        if !old.readiness.is_ready() && new.readiness.is_ready() && min_ready > 0 {
            let delay = Duration::from_secs(min_ready);
            effects.push(Effect::EnqueueAfter(set.metadata.key.clone(), delay, MIN_READY));
        }
        effects
    }

    /// A claim that is gone is made again for a pod that waits for it, or was in the way of a pod. Upstream follows
    /// claims too, and is woken by none.
    pub fn claim_changed(&self, change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
        match change {
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
            Change::Deleted(claim) => self.makers_of(claim).iter().map(enqueue).collect(),
        }
    }

    fn owner_of(&self, pod: &Pod) -> Vec<Effect> {
        self.owners.resolve(pod).iter().map(enqueue).collect()
    }

    /// One that would select everything selects nothing.
    ///
    /// Upstream: `GetPodStatefulSets`, `staging/src/k8s.io/client-go/listers/apps/v1/statefulset_expansion.go`.
    fn selecting(&self, orphan: &Pod) -> Vec<Effect> {
        let selects = |set: &StatefulSet, labels: &Labels| {
            set.spec.selector.as_ref().is_ok_and(|selector| !selector.is_empty() && selector.matches(labels))
        };
        self.owners.selecting(orphan, selects).iter().map(enqueue).collect()
    }
}
