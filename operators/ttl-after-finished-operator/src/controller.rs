//! Which event wakes which Job, and one sync on one screen.
//!
//! Left out: deleted Jobs, which wake nobody.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::informer::InformerBuilder;
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::flags::Flags;
use crate::metrics::DeletionDelay;
use crate::objects::Job;
use crate::observe::Sources;
use crate::plan::{Plan, is_of_interest, plan};

/// The operator as a process.
pub struct TtlAfterFinishedOperator;

impl Operator for TtlAfterFinishedOperator {
    const NAMES: Names = Names {
        operator: "ttl-after-finished-operator",
        controller: "ttl-after-finished-controller",
        event_source: "ttl-after-finished-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue("ttl_jobs_to_delete", Backoff::default());
        let mut jobs = InformerBuilder::<Job>::new().build();
        jobs.on_change(enqueue(queue.clone()));
        let delay = DeletionDelay::new();
        setup.metrics().register(DeletionDelay::NAME, DeletionDelay::HELP, delay.histogram());
        let control = setup.control(&queue);
        let controller = TtlAfterFinishedController {
            sources: Sources { jobs: jobs.cache(), control: control.clone() },
            writer: Writer { control, delay, clock: setup.clock() },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.watch(jobs);
        setup.work(Arc::new(controller), &queue, flags.concurrent_ttl_after_finished_syncs);
    }
}

/// Upstream: `addJob` and `updateJob`, `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`.
fn enqueue(queue: Queue) -> impl Fn(Change<'_, Job>) {
    move |change| match change {
        Change::Added(job) | Change::Updated { new: job, .. } if is_of_interest(job) => {
            queue.add(&job.metadata.key, Cause::Event);
        }
        Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => {}
    }
}

/// Syncs Jobs.
struct TtlAfterFinishedController {
    sources: Sources,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for TtlAfterFinishedController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(cached) = self.sources.cached(key) else { return Ok(Requeue::Done) };
        let mut decided = plan(&cached, self.clock.now());
        if matches!(decided, Plan::Delete { .. }) {
            let Some(live) = self.sources.live(key).await? else { return Ok(Requeue::Done) };
            decided = plan(&live, self.clock.now());
        }
        self.decisions.record(self.clock.now(), key, &decided);
        self.writer.apply(key, decided).await.context("delete the Job")
    }
}
