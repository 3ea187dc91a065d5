//! One sync of a node that was missing for the whole quarantine: it decides about the node's pods.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::resource::NODES;
use shared::controllers::brake::Brake;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::observe::{Caches, live_missing_node};
use crate::plan::{MissingPlan, NodeOutlook, plan_missing};

/// The key of the second sync of the node of this key, which has a timer of its own.
pub(super) fn late_key(node: &Key) -> Key {
    Key::new("late", node.name())
}

pub(super) struct MissingNodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) brake: Arc<Brake<Text>>,
    pub(super) ctx: ControllerContext,
}

impl Controller for MissingNodeController {
    /// Upstream: `gcOrphaned`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_missing_node(self.ctx.control(), self.caches.observe_missing(key)).await?;
        let plan = plan_missing(&observed);
        self.ctx.decide(key, &plan);
        let wait = self.hold_back(key, &plan);
        // A pod that never ran is no loss, so whoever binds pods to invented nodes fills no brake.
        let plan = if wait.is_some() { plan.without_what_ran() } else { plan };
        self.writer.apply_missing(&observed, plan).await?;
        Ok(wait.unwrap_or(Requeue::Done))
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
        let node = Text::new(key.name());
        if plan.deletes_what_ran() {
            return self.brake.ask_for_node(key, (&node, Uid::default()), || self.caches.nodes.len());
        }
        self.brake.withdraw(&node);
        None
    }
}
