//! One sync of the round: it looks at all nodes, and enqueues those that have to be written.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::queue::Queue;
use shared::working::worker::{Controller, Requeue};

use crate::apply::apply_round;
use crate::metrics::NodeMetrics;
use crate::observe::Caches;
use crate::plan::Config;
use crate::plan::round::plan_round;

pub(super) fn round_key() -> Key {
    Key::new("", "round")
}

pub(super) struct RoundController {
    pub(super) config: Config,
    pub(super) caches: Arc<Caches>,
    pub(super) nodes: Queue,
    pub(super) metrics: NodeMetrics,
    pub(super) ctx: ControllerContext,
}

impl Controller for RoundController {
    /// Nothing is awaited between the observation and the end of `apply_round`, so no node changes meanwhile.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.ctx.now();
        let plan = plan_round(&self.caches.observe_round(), &self.config, now);
        self.ctx.decide(key, &plan);
        let next = plan.next;
        apply_round(&self.caches.memory, &self.nodes, &self.metrics, plan);
        self.metrics.looked(self.ctx.now().duration_since(now));
        Ok(Requeue::After(next, "the next look at all nodes"))
    }

    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    /// The previews of the nodes show what is decided about each.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
