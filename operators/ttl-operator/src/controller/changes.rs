//! Which Node is synced when one changes.
//!
//! A change leads to a sync only if the Node's annotation is wrong. After a change of the cluster's size each Node is
//! therefore patched at its next heartbeat, and not all at once.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Node;
use crate::observe::Caches;
use crate::plan::{Plan, plan};

impl Caches {
    /// Upstream: `addNode`, `updateNode` and `deleteNode`, `pkg/controller/ttl/ttl_controller.go`; all but the last
    /// enqueue every Node there.
    pub fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let Some(node) = change.existing() else { return Vec::new() };
        let key = &node.metadata.key;
        let planned = self.observe(key).map(|observed| plan(&observed));
        let is_wrong = matches!(planned, Some(Plan::Annotate { .. }));
        is_wrong.then(|| Effect::Enqueue(key.clone(), Cause::Event)).into_iter().collect()
    }
}
