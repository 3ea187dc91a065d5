//! One sync of the queue of objects that are deleted without their dependents.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Uid};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::worker::{Controller, Requeue};

use crate::apply::orphan::Writer;
use crate::observe::Caches;
use crate::plan::orphan::{Plan, plan};

/// Orphans the dependents of objects that are deleted without them.
pub(super) struct AttemptToOrphan {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) ctx: ControllerContext,
}

impl Controller for AttemptToOrphan {
    /// Upstream: `attemptToOrphanWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(planned) = self.plan(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &planned);
        self.writer.apply(key, planned).await?;
        Ok(Requeue::Done)
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
