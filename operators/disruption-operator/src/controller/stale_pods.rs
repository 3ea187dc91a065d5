//! The controller of pods with the condition DisruptionTarget: one sync decides about one pod.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::worker::{Controller, Requeue};

use crate::apply::stale::Writer;
use crate::observe::Caches;
use crate::observe::stale::live_stale;
use crate::plan::stale::{TIMER, plan_stale};

pub(super) struct StalePodController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) ctx: ControllerContext,
}

impl Controller for StalePodController {
    /// Upstream: `syncStalePodDisruption`, `pkg/controller/disruption/disruption.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = live_stale(&self.caches, self.ctx.control(), key).await? else {
            self.ctx.forget(key, None);
            return Ok(Requeue::Done);
        };
        let plan = plan_stale(&observed, self.ctx.now());
        self.ctx.decide(key, &plan);
        let next = self.writer.apply(&observed, plan).await?;
        Ok(Requeue::earliest([next.map(|left| (left, TIMER))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe_stale(key);
        observed.iter().map(|observed| stage(&plan_stale(observed, self.ctx.now()))).collect()
    }
}
