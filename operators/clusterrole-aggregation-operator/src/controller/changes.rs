//! Which aggregated roles are synced when a role changes: those that select it, before or after the change, and itself.

use std::collections::BTreeSet;

use shared::api::labels::Labels;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{ClusterRole, Rule};
use crate::observe::Caches;

impl Caches {
    /// Upstream: `enqueue`, `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`, which enqueues
    /// all aggregated roles at each change.
    pub fn cluster_role_changed(&self, change: Change<'_, ClusterRole>) -> Vec<Effect> {
        let (old, new) = match change {
            Change::Added(new) => (None, Some(&**new)),
            Change::Updated { old, new } => (Some(&**old), Some(&**new)),
            Change::Deleted(last) => (Some(&**last), None),
        };
        let key = &change.latest().metadata.key;
        let own = new.and_then(|new| own_cause(old, new)).map(|cause| Effect::Enqueue(key.clone(), cause));
        let mut selecting = self.concerned(old.and_then(offer), new.and_then(offer));
        selecting.remove(key);
        own.into_iter().chain(selecting.into_iter().map(|key| Effect::Enqueue(key, Cause::Event))).collect()
    }

    /// The aggregated roles that selected a role before a change, or select it now; none if that makes no difference.
    fn concerned(&self, before: Option<Offer<'_>>, after: Option<Offer<'_>>) -> BTreeSet<Key> {
        if before == after {
            return BTreeSet::new();
        }
        before.into_iter().chain(after).flat_map(|(labels, _)| self.selecting(labels)).collect()
    }
}

type Offer<'a> = (&'a Labels, &'a [Rule]);

/// The part of a role that matters to the roles that select it; none if it has no rules.
fn offer(role: &ClusterRole) -> Option<Offer<'_>> {
    (!role.rules.is_empty()).then_some((&role.metadata.labels, &*role.rules))
}

/// Why a change of a role leads to its own sync, if it does. Any write of its rules leads to a comparison.
fn own_cause(old: Option<&ClusterRole>, new: &ClusterRole) -> Option<Cause> {
    let rule = new.aggregation_rule.as_ref()?;
    let is_edit = old.is_none_or(|old| old.aggregation_rule.as_ref() != Some(rule));
    let is_written = old.is_some_and(|old| old.rules != new.rules);
    if is_edit {
        Some(Cause::Edit)
    } else if is_written {
        Some(Cause::Event)
    } else {
        None
    }
}
