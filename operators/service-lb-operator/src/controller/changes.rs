//! Which Services are synced when one of them or a Node changes.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{Node, Service};
use crate::observe::Caches;

/// Upstream: the handlers of `New`.
pub fn service_changed(change: Change<'_, Service>) -> Vec<Effect> {
    let (old, new) = match change {
        Change::Added(new) => (None, new),
        Change::Updated { old, new } => (Some(old), new),
        Change::Deleted(last) => {
            let key = &last.metadata.key;
            return vec![Effect::Forget(key.clone(), last.metadata.uid), Effect::Enqueue(key.clone(), Cause::Event)];
        }
    };
    let is_edit = old.is_none_or(|old| new.needs_update(old)) && new.wants_load_balancer()
        || old.is_some_and(|old| old.wants_load_balancer() && !new.wants_load_balancer());
    let has_lost_finalizer = old.is_some_and(|old| old.has_finalizer()) && !new.has_finalizer();
    if is_edit || new.needs_cleanup() || has_lost_finalizer {
        vec![Effect::Enqueue(new.metadata.key.clone(), if is_edit { Cause::Edit } else { Cause::Event })]
    } else {
        Vec::new()
    }
}

impl Caches {
    /// A change of the Nodes concerns every load balancer.
    pub fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        if let Change::Updated { old, new } = change
            && !new.is_to_sync_after(old)
        {
            return Vec::new();
        }
        self.memory.keys().into_iter().map(|key| Effect::Enqueue(key, Cause::Event)).collect()
    }
}
