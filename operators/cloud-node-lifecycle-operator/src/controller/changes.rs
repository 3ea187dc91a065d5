//! The nodes that are synced when one changes.
//!
//! The heartbeats of a node lead to no sync: one that is not ready is synced again when the provider is asked again.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Node;
use crate::observe::Caches;
use crate::plan::is_news;

impl Caches {
    pub fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let node = change.latest();
        let key = &node.metadata.key;
        let enqueue = Effect::Enqueue(key.clone(), Cause::Event);
        let is_needed = match change {
            Change::Added(_) => is_news(node),
            Change::Updated { old, new } => old.ready != new.ready || old.is_tainted() != new.is_tainted(),
            // The sync forgets what is remembered of it.
            Change::Deleted(_) => return vec![Effect::Forget(key.clone(), node.metadata.uid), enqueue],
        };
        if is_needed { vec![enqueue] } else { Vec::new() }
    }
}
