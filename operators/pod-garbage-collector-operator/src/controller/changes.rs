//! The effects of a change of a node that do not wait for the next round.

use std::time::Duration;

use shared::following::cache::Change;
use shared::working::effect::Effect;

use super::missing_node::late_key;
use super::round_key;
use crate::apply::{QUARANTINE, QUARANTINE_PURPOSE};
use crate::objects::Node;

/// One round handles several nodes that go out of service within this time.
const SETTLE: Duration = Duration::from_secs(1);
/// By then no scheduler binds pods to a deleted node.
const LATE: Duration = Duration::from_mins(5);

/// A node that goes out of service leads to a round.
pub(super) fn node_changed(change: Change<'_, Node>) -> Vec<Effect> {
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

/// A deleted node is synced after the quarantine, and again later, for pods that a scheduler has bound to it meanwhile.
pub(super) fn missing_node_changed(change: Change<'_, Node>) -> Vec<Effect> {
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
