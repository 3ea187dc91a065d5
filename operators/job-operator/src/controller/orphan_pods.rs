//! The controller of pods that no Job may count any more: one sync decides about the tracking finalizer of one of them.
//!
//! Left out: which pods those are, which is [`super::changes::orphan_pods`]'.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::queue::Queue;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::orphan::{Outcome, Writer};
use crate::controller::changes::{BATCH, SYNC_JOB_BATCH_PERIOD};
use crate::observe::{Caches, live_job};
use crate::plan::orphan::{plan_live_read, plan_orphan};

/// Syncs pods that may have lost the Job which counts them.
pub(super) struct OrphanPodController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) jobs_queue: Queue,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for OrphanPodController {
    /// Upstream: `syncOrphanPod`, `pkg/controller/job/job_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_orphan(&self.writer.control, key).await? else {
            return Ok(Requeue::Done);
        };
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.decisions.record(self.clock.now(), key, &live_read);
                live_job(&self.writer.control, observed).await?
            }
        };
        let plan = plan_orphan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { disowned_by, error } = self.writer.apply(&observed, plan).await;
        // No event will tell it.
        if let Some(job) = disowned_by {
            self.jobs_queue.add_after(&job, SYNC_JOB_BATCH_PERIOD, BATCH);
        }
        error.map_or(Ok(Requeue::Done), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    /// Most pods are nobody's here: only of those that are followed anything can be said without a live read.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.cached_orphan(key);
        observed.iter().map(|observed| first_stage(plan_live_read(observed), || plan_orphan(observed))).collect()
    }
}
