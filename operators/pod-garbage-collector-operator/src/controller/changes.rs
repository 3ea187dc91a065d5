//! Which changes of pods and nodes do not wait for the next round.
//!
//! Left out: pods that have ended, and nodes that appear. A round comes soon enough for them.

use std::time::Duration;

use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;

use super::round_key;
use crate::objects::{Node, Pod};
use crate::observe::Caches;

/// What happens to many pods at once is one round's work.
const SETTLE: Duration = Duration::from_secs(1);

impl Caches {
    /// A pod has begun to be stuck.
    pub(crate) fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let is_news = match change {
            Change::Added(_) => true,
            Change::Updated { old, new: _ } => !old.metadata.is_being_deleted(),
            Change::Deleted(_) => false,
        };
        next_round(is_news && self.is_stuck(change.latest()))
    }

    /// A node is gone, or has begun to be out of service.
    #[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
    pub(crate) fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        next_round(match change {
            Change::Added(node) => node.is_out_of_service(),
            Change::Updated { old, new } => new.is_out_of_service() && !old.is_out_of_service(),
            Change::Deleted(_) => true,
        })
    }

    /// Whether a pod is stuck: being deleted, where nobody can end it. Volumes may wait for it to go.
    fn is_stuck(&self, pod: &Pod) -> bool {
        let node = || self.nodes.get(&Key::new("", &pod.node));
        let is_unscheduled = pod.node.is_empty();
        pod.metadata.is_being_deleted() && (is_unscheduled || node().is_some_and(|node| node.is_out_of_service()))
    }
}

fn next_round(is_due: bool) -> Vec<Effect> {
    if is_due { vec![Effect::EnqueueAfter(round_key(), SETTLE)] } else { Vec::new() }
}
