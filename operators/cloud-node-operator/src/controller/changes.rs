//! The nodes that are synced when one changes.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Node;
use crate::observe::Caches;
use crate::plan::Config;
use crate::plan::labels::stale_labels;

impl Caches {
    /// Upstream: `enqueueNode`, `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`, which enqueues a
    /// node at each of its changes. A heartbeat of a node that is initialized leads to no sync here.
    pub fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let node = change.latest();
        let key = &node.metadata.key;
        match change {
            Change::Deleted(_) => vec![Effect::Forget(key.clone(), node.metadata.uid)],
            Change::Added(_) | Change::Updated { .. } if node.is_uninitialized || !stale_labels(node).is_empty() => {
                vec![Effect::Enqueue(key.clone(), Cause::Event)]
            }
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
        }
    }

    /// The addresses of a node that was initialized just now are right.
    pub fn addresses_concerned(&self, change: Change<'_, Node>, config: &Config) -> Vec<Effect> {
        let node = change.latest();
        let key = &node.metadata.key;
        match change {
            Change::Added(_) if !node.is_uninitialized => vec![Effect::Enqueue(key.clone(), Cause::Event)],
            Change::Updated { old, .. } if old.is_uninitialized && !node.is_uninitialized => {
                vec![Effect::EnqueueAfter(key.clone(), config.period, AGAIN)]
            }
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
            Change::Deleted(_) => vec![Effect::Forget(key.clone(), node.metadata.uid)],
        }
    }
}

pub(super) const AGAIN: &str = "the next question to the cloud provider";
