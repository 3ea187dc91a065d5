//! Which Nodes are synced when one changes: a new one without CIDRs, and those that wait when one is deleted.
//!
//! [`crate::memory`] follows the blocks themselves.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::memory::Place;
use crate::objects::Node;
use crate::observe::Caches;

impl Caches {
    /// Upstream: `NewCIDRRangeAllocator`, `pkg/controller/nodeipam/ipam/range_allocator.go`, whose handlers enqueue a
    /// Node at each of its changes but its deletion.
    pub fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let node = match change {
            Change::Added(new) => new,
            Change::Updated { old, new } if old.spec != new.spec => new,
            Change::Updated { .. } => return Vec::new(),
            Change::Deleted(_) => return self.wake_waiting(),
        };
        let key = &node.metadata.key;
        self.needs_sync(node).then(|| Effect::Enqueue(key.clone(), Cause::Event)).into_iter().collect()
    }

    /// A Node that has CIDRs is synced only to report a wrong one.
    fn needs_sync(&self, node: &Node) -> bool {
        if node.pod_cidrs().is_empty() {
            return !node.metadata.is_being_deleted();
        }
        self.pool.places(node.pod_cidrs()).iter().any(|place| *place != Place::Own)
    }

    /// Syncs as many waiting Nodes as there are free blocks.
    fn wake_waiting(&self) -> Vec<Effect> {
        let free = usize::try_from(self.pool.free()).unwrap_or(usize::MAX);
        let waiting = self.waiting().take(free);
        waiting.map(|node| Effect::Enqueue(node.metadata.key.clone(), Cause::Event)).collect()
    }
}
