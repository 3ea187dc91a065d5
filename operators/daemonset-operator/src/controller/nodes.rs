//! The controller of nodes: one sync finds the DaemonSets that a new or changed node concerns.
//!
//! Left out: decisions about pods, which each DaemonSet's own sync makes.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::observe::Caches;
use crate::plan::nodes::{NodePlan, plan_node};

pub(super) struct NodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) sets: Queue,
    pub(super) ctx: ControllerContext,
}

impl Controller for NodeController {
    /// Upstream: `syncNodeUpdate`, `pkg/controller/daemon/daemon_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_node(key) else { return Ok(Requeue::Done) };
        let plan = plan_node(&observed);
        self.ctx.decide(key, &plan);
        let NodePlan { sync, reason: _ } = plan;
        for set in sync {
            self.sets.add(&set, Cause::Event);
        }
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe_node(key).iter().map(|observed| stage(&plan_node(observed))).collect()
    }
}
