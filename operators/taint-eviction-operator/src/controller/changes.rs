//! The keys that a change of a pod or a node enqueues.
//!
//! Heartbeats and status changes are frequent, so only changes of taints, tolerations and bindings count.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{Node, Pod};
use crate::observe::Caches;

impl Caches {
    /// Upstream: `NodeUpdated`, `pkg/controller/tainteviction/taint_eviction.go`. A deletion stays pending when the node
    /// is gone, as upstream; it is dropped when a node of this name appears without taints.
    pub(crate) fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let cause = match change {
            Change::Added(node) if node.evicts_pods() || !self.evictions.is_empty() => Cause::Event,
            Change::Updated { old, new } if old.taints != new.taints => Cause::Edit,
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => return Vec::new(),
        };
        vec![Effect::Enqueue(change.latest().metadata.key.clone(), cause)]
    }

    /// Upstream: `PodUpdated`. On a node without `NoExecute` taints, a pod is synced only if its deletion is pending.
    pub(crate) fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let key = &change.latest().metadata.key;
        let is_pending = || self.evictions.has(key);
        let (is_concerned, cause) = match change {
            Change::Added(pod) => (self.evicts_pods(&pod.node) || is_pending(), Cause::Event),
            Change::Updated { old, new } => {
                let is_other = old.node != new.node || old.tolerations != new.tolerations;
                (is_other && (self.evicts_pods(&new.node) || is_pending()), Cause::Edit)
            }
            Change::Deleted(_) => (is_pending(), Cause::Event),
        };
        if is_concerned { vec![Effect::Enqueue(key.clone(), cause)] } else { Vec::new() }
    }
}
