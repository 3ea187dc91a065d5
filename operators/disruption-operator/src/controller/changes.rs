//! The effects of changes of budgets and pods.
//!
//! Owners have none: as in upstream, a new scale counts at the next change of a pod.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared::api::labels::Labels;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::events::PlannedEvent;
use shared::working::queue::Cause;

use crate::memory::Memory;
use crate::objects::{Pod, PodDisruptionBudget};
use crate::observe::Caches;
use crate::plan::notices::several_budgets;
use crate::plan::stale::{TIMER, stale_in};

pub(super) fn remember(memory: &Memory, change: Change<'_, PodDisruptionBudget>) {
    match change {
        Change::Added(budget) | Change::Updated { old: _, new: budget } => memory.note(budget),
        Change::Deleted(budget) => memory.forget(budget),
    }
}

/// Check a pod when its condition DisruptionTarget becomes stale.
///
/// Upstream: `addPod` and `updatePod`, `pkg/controller/disruption/disruption.go`.
pub(super) fn stale_pod_changed(change: Change<'_, Pod>, now: Timestamp) -> Vec<Effect> {
    let due = change.existing().and_then(|pod| Some((pod.metadata.key.clone(), stale_in(pod, now)?)));
    due.map(|(pod, left)| Effect::EnqueueAfter(pod, left, TIMER)).into_iter().collect()
}

impl Caches {
    /// Sync a budget if its spec changed, or if its status is not the one decided last, such as after an eviction.
    ///
    /// Upstream: `addDB`, `updateDB` and `removeDB`, `pkg/controller/disruption/disruption.go`.
    pub(super) fn budget_changed(&self, change: Change<'_, PodDisruptionBudget>) -> Vec<Effect> {
        let meta = &change.latest().metadata;
        let key = meta.key.clone();
        match change {
            Change::Updated { old, new } if old.metadata.generation != new.metadata.generation => {
                vec![Effect::Enqueue(key, Cause::Edit)]
            }
            Change::Updated { old: _, new } if self.memory.decided.is_last(&key, &new.status) => Vec::new(),
            Change::Added(_) | Change::Updated { .. } => vec![Effect::Enqueue(key, Cause::Event)],
            Change::Deleted(_) => vec![Effect::Forget(key, meta.uid)],
        }
    }

    /// Sync the budgets that select a pod now, or did before.
    ///
    /// Upstream: `addPod`, `updatePod` and `deletePod`, `pkg/controller/disruption/disruption.go`. Upstream does not sync
    /// a budget that a pod leaves, and syncs only one of several budgets.
    pub(super) fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let keys = match change {
            Change::Added(pod) | Change::Deleted(pod) => self.budgets_of(pod, &pod.metadata.labels),
            Change::Updated { old, new } if old.is_alike(new) => BTreeSet::new(),
            Change::Updated { old, new } => {
                let mut keys = self.budgets_of(new, &new.metadata.labels);
                keys.extend(self.budgets_of(new, &old.metadata.labels));
                keys
            }
        };
        keys.into_iter().map(|budget| Effect::Enqueue(budget, Cause::Event)).collect()
    }

    fn budgets_of(&self, pod: &Pod, labels: &Labels) -> BTreeSet<Key> {
        let budgets = self.selected.budgets(pod.metadata.namespace(), labels);
        budgets.iter().map(|budget| budget.metadata.key.clone()).collect()
    }

    /// The warning about a pod that several budgets select, which therefore cannot be evicted.
    ///
    /// Upstream: `getPdbForPod`, `pkg/controller/disruption/disruption.go`, warns at every event of the pod; here only
    /// at changes that count for a budget.
    pub(super) fn overlap_changed(&self, change: Change<'_, Pod>) -> Option<PlannedEvent> {
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
