//! One sync of a node: it finds the pods of the node whose plans have changed.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::controllers::brake::Brake;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Queue;
use shared::working::worker::{Controller, Requeue};

use crate::apply::apply_node;
use crate::observe::{Caches, ObservedNode};
use crate::plan::{NodePlan, plan_node};

pub(super) struct NodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) pods: Queue,
    pub(super) brake: Arc<Brake<Text>>,
    pub(super) ctx: ControllerContext,
}

impl Controller for NodeController {
    /// Upstream: `handleNodeUpdate`, `pkg/controller/tainteviction/taint_eviction.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        apply_node(&self.pods, plan);
        if !observed.node.is_tainted_for_health() {
            self.brake.withdraw(&Text::new(key.name()));
        }
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}

impl NodeController {
    fn decide(&self, key: &Key) -> Option<(ObservedNode, NodePlan)> {
        let now = self.ctx.now();
        let observed = self.caches.observe_node(key, now)?;
        let plan = plan_node(&observed, now);
        Some((observed, plan))
    }
}
