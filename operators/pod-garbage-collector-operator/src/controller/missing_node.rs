//! One sync of a node that was missing for the whole quarantine: it decides about the node's pods.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::controllers::brake::Brake;
use shared::runtime::context::ControllerContext;
use shared::runtime::decisions::stage;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::observe::{Caches, live_missing_node};
use crate::plan::{MissingPlan, NodeOutlook, plan_missing};

/// The key of the second sync of the node of this key, which has a timer of its own.
pub(super) fn late_key(node: &Key) -> Key {
    Key::new("late", node.name())
}

/// Deletes the pods of missing nodes.
pub(super) struct MissingNodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) brake: Brake<Text>,
    pub(super) ctx: ControllerContext,
}

impl Controller for MissingNodeController {
    /// Upstream: `gcOrphaned`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_missing_node(self.ctx.control(), self.caches.observe_missing(key)).await?;
        let plan = plan_missing(&observed);
        self.ctx.decide(key, &plan);
        if let Some(wait) = self.hold_back(key, &plan) {
            return Ok(wait);
        }
        self.writer.apply_missing(&observed, plan).await?;
        Ok(Requeue::Done)
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
    /// When to retry a deletion that the brake delays.
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
