//! The controller of pods that no Job may count any more: one sync decides about the tracking finalizer of one of them.
//!
//! Left out: which pods those are, which is [`super::changes::orphan_pods`]'.

use std::sync::Arc;

use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::orphan::{Outcome, Writer};
use crate::observe::{Caches, live_job};
use crate::plan::orphan::plan_orphan;

/// Syncs pods that may have lost the Job which counts them.
pub(super) struct OrphanPodController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for OrphanPodController {
    /// Upstream: `syncOrphanPod`, `pkg/controller/job/job_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_orphan(key) else { return Ok(Requeue::Done) };
        let observed = live_job(&self.writer.control, observed).await?;
        let plan = plan_orphan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { error } = self.writer.apply(&observed, plan).await;
        error.map_or(Ok(Requeue::Done), Err)
    }
}
