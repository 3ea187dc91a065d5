//! Which budgets a change of a budget or of a pod concerns, and which pods are looked at by themselves.
//!
//! Left out: owners. How many pods they ask for counts with the next change of a pod, as upstream.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared::api::labels::Labels;
use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::apply::stale::STALE;
use crate::objects::{Pod, PodDisruptionBudget};
use crate::observe::Caches;
use crate::plan::PlannedEvent;
use crate::plan::notices::several_budgets;
use crate::plan::stale::stale_in;

impl Caches {
    /// A budget is synced when it asks for something else, and when its status is not the one that was decided last:
    /// the apiserver notes evictions there.
    ///
    /// Upstream: `addDB`, `updateDB` and `removeDB`, `pkg/controller/disruption/disruption.go`.
    pub fn budget_changed(&self, change: Change<'_, PodDisruptionBudget>) -> Vec<Effect> {
        let meta = &change.latest().metadata;
        let key = meta.key.clone();
        match change {
            Change::Updated { old, new } if old.metadata.generation != new.metadata.generation => {
                vec![Effect::Enqueue(key, Cause::Edit)]
            }
            Change::Updated { old: _, new } if self.decided.is_last(&key, &new.status) => Vec::new(),
            Change::Added(_) | Change::Updated { .. } => vec![Effect::Enqueue(key, Cause::Event)],
            Change::Deleted(_) => vec![Effect::Forget(key, meta.uid)],
        }
    }

    /// The budgets that a pod comes to, leaves, or changes for.
    ///
    /// Upstream: `addPod`, `updatePod` and `deletePod`, `pkg/controller/disruption/disruption.go`. There a budget that
    /// a pod leaves is not synced, and of several budgets of a pod only one is.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let keys = match change {
            Change::Added(pod) | Change::Deleted(pod) => self.keys(pod, &pod.metadata.labels),
            Change::Updated { old, new } if old.is_alike(new) => BTreeSet::new(),
            Change::Updated { old, new } => {
                let mut keys = self.keys(new, &new.metadata.labels);
                keys.extend(self.keys(new, &old.metadata.labels));
                keys
            }
        };
        keys.into_iter().map(|budget| Effect::Enqueue(budget, Cause::Event)).collect()
    }

    fn keys(&self, pod: &Pod, labels: &Labels) -> BTreeSet<Key> {
        let budgets = self.selected.budgets(pod.metadata.namespace(), labels);
        budgets.iter().map(|budget| budget.metadata.key.clone()).collect()
    }

    /// The warning about a pod that several budgets select, which then cannot be evicted at all.
    ///
    /// Upstream: `getPdbForPod`, `pkg/controller/disruption/disruption.go`, warns at each event of the pod; here only
    /// those count that make a difference to a budget.
    pub fn overlap_changed(&self, change: Change<'_, Pod>) -> Option<PlannedEvent> {
        if let Change::Updated { old, new } = change
            && old.is_alike(new)
        {
            return None;
        }
        let pod = change.latest();
        let budgets = self.selected.budgets(pod.metadata.namespace(), &pod.metadata.labels);
        several_budgets(pod, budgets.iter().map(|budget| &**budget))
    }
}

/// A pod is looked at when the time is over in which something outside of it may end it.
///
/// Upstream: `addPod` and `updatePod`, `pkg/controller/disruption/disruption.go`.
pub fn stale_pod_changed(change: Change<'_, Pod>, now: Timestamp) -> Vec<Effect> {
    let due = change.existing().and_then(|pod| Some((pod.metadata.key.clone(), stale_in(pod, now)?)));
    due.map(|(pod, left)| Effect::EnqueueAfter(pod, left, STALE)).into_iter().collect()
}
