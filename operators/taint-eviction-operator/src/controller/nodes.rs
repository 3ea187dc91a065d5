//! The controller of nodes: one sync finds the pods of a node whose plans have changed.
//!
//! Left out: decisions about pods, which each pod's own sync makes.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::controllers::brake::Brake;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Queue;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::apply_node;
use crate::observe::Caches;
use crate::plan::plan_node;

/// Looks at the pods of nodes.
pub(super) struct NodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) pods: Queue,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
    pub(super) brake: Arc<Brake<Text>>,
}

impl Controller for NodeController {
    /// Upstream: `handleNodeUpdate`, `pkg/controller/tainteviction/taint_eviction.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_node(key) else { return Ok(Requeue::Done) };
        let plan = plan_node(&observed, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
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
        let observed = self.caches.observe_node(key);
        observed.iter().map(|observed| stage(&plan_node(observed, self.clock.now()))).collect()
    }
}
