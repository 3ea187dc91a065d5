//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change enqueues which Job, which is in `changes`.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::DeletionDelay;
use crate::observe::{Caches, Informers, live_job};
use crate::plan::{Plan, plan};

/// The operator as a process.
pub struct TtlAfterFinishedOperator;

impl Operator for TtlAfterFinishedOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let control = setup.control(&queue);
        let (caches, Informers { mut jobs }) = Caches::new();
        let caches = Arc::new(caches);
        jobs.on_change(setup.effects(&queue).of(&caches, Caches::job_changed));
        setup.watch(jobs);
        let delay = DeletionDelay::new();
        setup.metrics().register(DeletionDelay::NAME, DeletionDelay::HELP, delay.histogram());
        let controller = TtlAfterFinishedController {
            caches,
            writer: Writer { control, delay, clock: setup.clock() },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_ttl_after_finished_syncs);
    }
}

/// Syncs Jobs.
struct TtlAfterFinishedController {
    caches: Arc<Caches>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for TtlAfterFinishedController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let mut decided = plan(&observed, self.clock.now());
        if matches!(decided, Plan::Delete { .. }) {
            let Some(live) = live_job(&self.writer.control, key).await? else { return Ok(Requeue::Done) };
            decided = plan(&live, self.clock.now());
            observed = live;
        }
        self.decisions.record(self.clock.now(), key, &decided);
        let Outcome { next, error } = self.writer.apply(&observed, decided).await;
        match error {
            Some(error) => Err(error),
            None => Ok(Requeue::earliest([next.map(|delay| (delay, "the end of its time to live"))])),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&JOBS)
    }

    /// A deletion is decided once more on the Job as it is then.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        observed.iter().map(|observed| stage(&plan(observed, self.clock.now()))).collect()
    }
}
