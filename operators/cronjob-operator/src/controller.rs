//! Which event wakes which CronJob, and one sync on one screen.
//!
//! Left out: periodic syncs. A CronJob sleeps until its next time, or until something happens to it or to its Jobs.

use std::sync::Arc;

use shared::api::object::Key;
use shared::runtime::cache::{Cache, Change};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::informer::InformerBuilder;
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::flags::Flags;
use crate::metrics::CreationSkew;
use crate::objects::{CRON_JOBS, CronJob, Job};
use crate::observe::edits::Edits;
use crate::observe::{Sources, controller_name};
use crate::plan::plan;
use crate::status::next_status;

/// The cronjob-operator.
pub struct CronJobOperator;

impl Operator for CronJobOperator {
    const NAMES: Names =
        Names { operator: "cronjob-operator", controller: "cronjob-controller", event_source: "cronjob-controller" };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue("cronjob", Backoff::default());
        let mut cron_jobs = InformerBuilder::<CronJob>::new().build();
        let mut jobs = InformerBuilder::<Job>::new();
        let by_controller_name = jobs.index(|job, emit| {
            if let Some(controller) = &job.metadata.controller {
                emit(controller_name(job.metadata.namespace(), &controller.name));
            }
        });
        let mut jobs = jobs.build();
        let (edits, clock) = (Arc::new(Edits::default()), setup.clock());
        let noted = Arc::clone(&edits);
        // A standby that takes over must know of edits that the leader has seen.
        cron_jobs.on_change_at_any_time(move |change| noted.note(&change, clock.now()));
        cron_jobs.on_change(enqueue_cron_job(queue.clone()));
        jobs.on_change(enqueue_owner(queue.clone(), cron_jobs.cache()));

        let control = setup.control(&queue);
        let skew = CreationSkew::new();
        setup.metrics().register(CreationSkew::NAME, CreationSkew::HELP, skew.histogram());
        let controller = CronJobController {
            sources: Sources {
                cron_jobs: cron_jobs.cache(),
                jobs: jobs.cache(),
                by_controller_name,
                control: control.clone(),
                edits,
            },
            writer: Writer { control, recorder: setup.recorder(), skew },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.watch(cron_jobs);
        setup.watch(jobs);
        setup.work(Arc::new(controller), &queue, flags.concurrent_cron_job_syncs);
    }
}

/// Upstream: `updateCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
fn enqueue_cron_job(queue: Queue) -> impl Fn(Change<'_, CronJob>) {
    move |change| match change {
        Change::Added(cron_job) | Change::Deleted(cron_job) => queue.add(&cron_job.metadata.key, Cause::Event),
        Change::Updated { old, new } => {
            let is_edit = old.metadata.generation != new.metadata.generation;
            queue.add(&new.metadata.key, if is_edit { Cause::Edit } else { Cause::Event });
        }
    }
}

/// Upstream: `addJob`, `updateJob` and `deleteJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
fn enqueue_owner(queue: Queue, cron_jobs: Arc<Cache<CronJob>>) -> impl Fn(Change<'_, Job>) {
    let enqueue = move |job: &Job| {
        let controller = job.metadata.controller.as_ref().filter(|controller| controller.kind == *CRON_JOBS.kind);
        let Some(controller) = controller else { return };
        if let Some(owner) = cron_jobs.get_with_uid(job.metadata.namespace(), &controller.name, controller.uid) {
            queue.add(&owner.metadata.key, Cause::Event);
        }
    };
    move |change| match change {
        Change::Added(job) | Change::Deleted(job) => enqueue(job),
        Change::Updated { old, new } => {
            if old.metadata.controller != new.metadata.controller {
                enqueue(old);
            }
            enqueue(new);
        }
    }
}

/// Syncs CronJobs.
struct CronJobController {
    sources: Sources,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for CronJobController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.sources.observe(key).await? else {
            self.writer.control.forget(key, None);
            return Ok(Requeue::Done);
        };
        let now = self.clock.now();
        let plan = plan(&observed, now);
        self.decisions.record(now, key, &plan);

        let outcome = self.writer.apply(&observed, &plan).await;

        if let Some(status) = next_status(&observed, &outcome) {
            self.writer.write_status(&observed.cron_job, &status).await?;
        }
        match outcome.error {
            Some(error) => Err(error),
            None => Ok(plan.next.map_or(Requeue::Done, Requeue::After)),
        }
    }
}
