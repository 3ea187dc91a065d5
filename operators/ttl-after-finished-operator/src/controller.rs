//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::DeletionDelay;
use crate::observe::{Caches, Informers, live_job};
use crate::plan::{Plan, plan};

pub struct TtlAfterFinishedOperator;

impl Operator for TtlAfterFinishedOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut jobs }) = Caches::new();
        jobs.on_change(setup.effects(&queue).with(changes::job_changed));
        setup.watch(jobs);
        let delay = DeletionDelay::new();
        setup.metrics().register(DeletionDelay::NAME, DeletionDelay::HELP, delay.histogram());
        let controller = TtlAfterFinishedController { caches, writer: Writer { ctx: ctx.clone(), delay }, ctx };
        setup.work(Arc::new(controller), &queue, flags.concurrent_ttl_after_finished_syncs);
    }
}

struct TtlAfterFinishedController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for TtlAfterFinishedController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let mut decided = plan(&observed, self.ctx.now());
        if matches!(decided, Plan::Delete { .. }) {
            let Some(live) = live_job(self.ctx.control(), key).await? else { return Ok(Requeue::Done) };
            decided = plan(&live, self.ctx.now());
            observed = live;
        }
        self.ctx.decide(key, &decided);
        let next = self.writer.apply(&observed, decided).await?;
        Ok(Requeue::earliest([next.map(|delay| (delay, "the end of its time to live"))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&JOBS)
    }

    /// A sync decides on a deletion again, for the live Job.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe(key).iter().map(|observed| stage(&plan(observed, self.ctx.now()))).collect()
    }
}
