//! Which changes of nodes mean something before the next round.
//!
//! Left out: pods. A round comes soon enough for them.

use std::time::Duration;

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;

use super::missing_node::late_key;
use super::round_key;
use crate::apply::{QUARANTINE, QUARANTINE_PURPOSE};
use crate::objects::Node;
use crate::observe::Caches;

/// One round handles the changes of many nodes at once.
const SETTLE: Duration = Duration::from_secs(1);
/// Until then everybody knows that a node is gone: no pod is bound to it any more.
const LATE: Duration = Duration::from_mins(5);

impl Caches {
    /// A node has begun to be out of service.
    pub(crate) fn node_changed(change: Change<'_, Node>) -> Vec<Effect> {
        let is_due = match change {
            Change::Added(node) => node.is_out_of_service(),
            Change::Updated { old, new } => new.is_out_of_service() && !old.is_out_of_service(),
            Change::Deleted(_) => false,
        };
        if is_due {
            vec![Effect::EnqueueAfter(round_key(), SETTLE, "other nodes that go out of service")]
        } else {
            Vec::new()
        }
    }

    /// A node is gone. The second look is for pods that a scheduler which did not know has bound to it since.
    pub(crate) fn missing_node_changed(change: Change<'_, Node>) -> Vec<Effect> {
        match change {
            Change::Deleted(node) => {
                let key = &node.metadata.key;
                vec![
                    Effect::EnqueueAfter(key.clone(), QUARANTINE, QUARANTINE_PURPOSE),
                    Effect::EnqueueAfter(late_key(key), LATE, "pods that are bound to it late"),
                ]
            }
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
        }
    }
}
