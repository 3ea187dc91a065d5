//! The controller of pods that no Job may count any more: one sync decides on the tracking finalizer of one pod.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::working::context::ControllerContext;
use shared::working::decisions::first_stage;
use shared::working::queue::Queue;
use shared::working::worker::{Controller, Requeue};

use crate::apply::orphan::Writer;
use crate::controller::changes::{BATCH, SYNC_JOB_BATCH_PERIOD};
use crate::observe::{Caches, live_job};
use crate::plan::orphan::{plan_live_read, plan_orphan};

pub(super) struct OrphanPodController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) jobs_queue: Queue,
    pub(super) ctx: ControllerContext,
}

impl Controller for OrphanPodController {
    /// Upstream: `syncOrphanPod`, `pkg/controller/job/job_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_orphan(self.ctx.control(), key).await? else {
            return Ok(Requeue::Done);
        };
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.ctx.decide(key, &live_read);
                live_job(self.ctx.control(), observed).await?
            }
        };
        let plan = plan_orphan(&observed);
        self.ctx.decide(key, &plan);
        // No watch shows the pod, so no event would wake the Job that lost it.
        if let Some(job) = self.writer.apply(&observed, plan).await? {
            self.jobs_queue.add_after(&job, SYNC_JOB_BATCH_PERIOD, BATCH);
        }
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    /// None for a pod that is not cached, which a sync reads live.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.cached_orphan(key);
        observed.iter().map(|observed| first_stage(plan_live_read(observed), || plan_orphan(observed))).collect()
    }
}
