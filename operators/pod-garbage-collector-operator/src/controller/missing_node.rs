//! The controller of nodes that were missing: one sync decides on the pods of one of them.
//!
//! Left out: how long a node is waited for, which is known where it is enqueued.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::controllers::brake::Brake;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::observe::{Caches, live_missing_node};
use crate::plan::{MissingPlan, NodeOutlook, plan_missing};

/// The key of the second look at the node of this key, which has a time of its own.
pub(super) fn late_key(node: &Key) -> Key {
    Key::new("late", node.name())
}

/// Looks at one node that was missing for long enough.
pub(super) struct MissingNodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) brake: Brake<Text>,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for MissingNodeController {
    /// Upstream: `gcOrphaned`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_missing_node(&self.writer.control, self.caches.observe_missing(key)).await?;
        let plan = plan_missing(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        if let Some(wait) = self.hold_back(key, &plan) {
            return Ok(wait);
        }
        let Outcome { error } = self.writer.apply_missing(&observed, plan).await;
        error.map_or(Ok(Requeue::Done), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let is_cached = self.caches.observe_missing(key).is_cached;
        vec![stage(if is_cached { &NodeOutlook::Exists } else { &NodeOutlook::NotSeen })]
    }
}

impl MissingNodeController {
    /// When to look again at a node whose pods have to wait for their deletion.
    fn hold_back(&self, key: &Key, plan: &MissingPlan) -> Option<Requeue> {
        let nodes = |known| self.caches.nodes.len() + known + self.writer.missing.len();
        let node = Text::new(key.name());
        match plan {
            MissingPlan::Keep(_) => {
                self.brake.withdraw(&node);
                None
            }
            MissingPlan::Delete(_) => self.brake.ask(key, "nodes", &node, nodes),
        }
    }
}
