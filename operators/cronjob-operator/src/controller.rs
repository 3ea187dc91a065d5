//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::live_spec::complete;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::{first_stage, stage};
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::CreationSkew;
use crate::objects::CronJob;
use crate::observe::{Caches, Informers, Observed, live_where_they_differ};
use crate::plan::{plan, plan_live_read, plan_template_read};
use crate::status::next_status;

pub struct CronJobOperator;

impl Operator for CronJobOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut cron_jobs, mut jobs }) = Caches::new();
        let caches = Arc::new(caches);
        let (noting, clock) = (Arc::clone(&caches), setup.clock());
        // On a standby too, which may take over after an edit.
        cron_jobs.on_change_at_any_time(move |change| noting.edits.note(&change, clock.now()));
        let effects = setup.effects(&queue);
        cron_jobs.on_change(effects.with(changes::cron_job_changed));
        jobs.on_change(effects.of(&caches, Caches::job_changed));
        let need = cron_jobs.need(|_| true);
        setup.watch(cron_jobs);
        setup.watch_beside(jobs, &need);
        let skew = CreationSkew::new();
        setup.metrics().register(CreationSkew::NAME, CreationSkew::HELP, skew.histogram());
        let controller = CronJobController { caches, writer: Writer { ctx: ctx.clone(), skew }, ctx };
        setup.work(Arc::new(controller), &queue, flags.concurrent_cron_job_syncs);
    }
}

struct CronJobController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for CronJobController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.ctx.forget(key, None);
            return Ok(Requeue::Done);
        };
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.ctx.decide(key, &live_read);
                live_where_they_differ(self.ctx.control(), observed).await?
            }
        };
        let now = self.ctx.now();
        let observed = match plan_template_read(&observed, now) {
            None => observed,
            Some(live_read) => {
                self.ctx.decide(key, &live_read);
                let cron_job = complete(self.ctx.control(), &observed.cron_job).await?;
                Observed { cron_job, ..observed }
            }
        };
        let plan = plan(&observed, now);
        self.ctx.decide(key, &plan);

        let outcome = self.writer.apply(&observed, plan).await;

        if let Some(status) = next_status(&observed, &outcome) {
            self.writer.write_status(&observed, &status).await?;
        }
        let Outcome { left: _, started: _, next, error } = outcome;
        match error {
            Some(error) => Err(error),
            None => Ok(next.map_or(Requeue::Done, |delay| Requeue::After(delay, "its next start"))),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CronJob::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let (now, observed) = (self.ctx.now(), self.caches.observe(key));
        let first = |observed| match plan_live_read(observed) {
            Some(live_read) => stage(&live_read),
            None => first_stage(plan_template_read(observed, now), || plan(observed, now)),
        };
        observed.iter().map(first).collect()
    }
}
