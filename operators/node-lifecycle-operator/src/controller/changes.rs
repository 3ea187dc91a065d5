//! The nodes that are synced when one changes.
//!
//! A heartbeat only changes the memory. The next round finds the end of a grace period, and of a turn.

use jiff::Timestamp;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Node;
use crate::observe::Caches;
use crate::plan::{Config, plan};

impl Caches {
    /// Upstream: `NewNodeLifecycleController`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, whose
    /// handlers enqueue a node at each of its changes.
    pub(crate) fn node_changed(&self, change: Change<'_, Node>, config: &Config, now: Timestamp) -> Vec<Effect> {
        let key = &change.latest().metadata.key;
        let cause = match change {
            Change::Updated { old, new } if old.unschedulable != new.unschedulable => Cause::Edit,
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => Cause::Event,
        };
        let is_news = self.observe(key).is_some_and(|observed| plan(&observed, config, now).is_news());
        is_news.then(|| Effect::Enqueue(key.clone(), cause)).into_iter().collect()
    }

    /// The pods of a lost node have to be marked.
    pub(crate) fn pods_concerned(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let Some(node) = change.existing() else { return Vec::new() };
        let is_concerned = node.is_lost() && !self.memory.is_marked(node);
        is_concerned.then(|| Effect::Enqueue(node.metadata.key.clone(), Cause::Event)).into_iter().collect()
    }
}
