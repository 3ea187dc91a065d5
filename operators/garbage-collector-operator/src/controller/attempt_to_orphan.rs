//! One sync of the queue of objects that are deleted without their dependents.
//!
//! Left out: which objects those are, which the graph says.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Uid};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::orphan::{Outcome, Writer};
use crate::observe::Caches;
use crate::plan::orphan::{Plan, plan};

/// Orphans the dependents of what is deleted without them.
pub(super) struct AttemptToOrphan {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for AttemptToOrphan {
    /// Upstream: `attemptToOrphanWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(planned) = self.plan(key) else { return Ok(Requeue::Done) };
        self.decisions.record(self.clock.now(), key, &planned);
        let Outcome { error } = self.writer.apply(key, planned).await;
        error.map_or(Ok(Requeue::Done), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        self.caches.orphaning_key_of(object)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.plan(key).iter().map(stage).collect()
    }
}

impl AttemptToOrphan {
    fn plan(&self, key: &Key) -> Option<Plan> {
        self.caches.with_graph(|graph| plan(graph, Uid::parse(key.name())))
    }
}
