//! The controller of pods: one sync marks the pods of a node that is lost.
//!
//! Left out: following pods. They are listed once, when the node's condition says that it is lost, and at a start.

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::observe::{ObservedPods, live_pods};
use crate::plan::pods::{plan_pods, plan_pods_read};

/// Marks the pods of nodes.
pub(super) struct PodsController {
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for PodsController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.writer.caches.observe_pods(key) else { return Ok(Requeue::Done) };
        let mut pods = Vec::new();
        if let Some(live_read) = plan_pods_read(&observed) {
            self.decisions.record(self.clock.now(), key, &live_read);
            pods = live_pods(&self.writer.control, key).await?;
        }
        let plan = plan_pods(&observed, &pods);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { error } = self.writer.apply_pods(&observed, plan).await;
        error.map_or(Ok(Requeue::Done), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.writer.caches.observe_pods(key);
        let stage = |observed: &ObservedPods| first_stage(plan_pods_read(observed), || plan_pods(observed, &[]));
        observed.iter().map(stage).collect()
    }
}
