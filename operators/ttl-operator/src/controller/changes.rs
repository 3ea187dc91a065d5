//! Which Node is synced when one changes.
//!
//! Most changes of a Node are its heartbeats, and give nothing to do. But where its annotation is not what is right by
//! now, any of them leads to a sync: as upstream, a cluster of another size is told its Nodes at their own pace, and not
//! all at once. Left out: the number of Nodes, which is noted on a standby too: that is [`Caches::note_size`].

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

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
