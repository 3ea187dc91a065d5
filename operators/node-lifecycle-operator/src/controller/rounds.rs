//! The controller of rounds: one sync looks at all nodes, and finds those that have to be synced.
//!
//! Left out: writing, which the sync of each node does.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::Queue;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::apply_round;
use crate::metrics::NodeMetrics;
use crate::observe::Caches;
use crate::plan::Config;
use crate::plan::round::plan_round;

/// The key of all rounds.
pub(super) fn round_key() -> Key {
    Key::new("", "round")
}

/// Looks at all nodes.
pub(super) struct RoundController {
    pub(super) config: Config,
    pub(super) caches: Arc<Caches>,
    pub(super) nodes: Queue,
    pub(super) metrics: NodeMetrics,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for RoundController {
    /// Nothing is awaited between the look and what follows from it, so no node changes meanwhile.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.clock.now();
        let plan = plan_round(&self.caches.observe_round(), &self.config, now);
        self.decisions.record(now, key, &plan);
        let next = plan.next;
        apply_round(&self.caches, &self.nodes, &self.metrics, plan);
        self.metrics.looked(self.clock.now().duration_since(now));
        Ok(Requeue::After(next, "the next look at all nodes"))
    }

    /// It acts on no single object.
    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    /// Each node says by itself what is decided about it.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
