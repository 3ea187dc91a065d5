//! The operator as a process, and one sync of a Job on one screen.

pub mod changes;
mod orphan_pods;
mod unseen_pods;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::live_spec::complete;
use shared::controllers::pod_control::PodControl;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::{Outcome, Tracked, Writer, orphan};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::{JobMetrics, action};
use crate::objects::Job;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::tracking::{Executed, plan_tracking};
use crate::plan::{plan, plan_template_read};
use crate::status::{LastStatus, next_status};
use changes::tracking::{TrackingEffects, tracked_job_changed};
use orphan_pods::OrphanPodController;
use unseen_pods::{UnseenPodController, all_pods};

/// Upstream: `DefaultJobApiBackOff` and `MaxJobApiBackOff`, `pkg/controller/job/job_controller.go`, with at most a
/// minute.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

pub struct JobOperator;

impl Operator for JobOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let jobs_queue = setup.queue(facts::JOBS.name, BACKOFF);
        let orphans_queue = setup.queue(facts::ORPHANS.name, BACKOFF);
        let unseen_queue = setup.queue(facts::UNSEEN.name, BACKOFF);
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let ctx = setup.context(&jobs_queue);
        let writer = Writer {
            pods: PodControl::new(ctx.control().clone(), ctx.recorder().clone()),
            ctx: ctx.clone(),
            expectations: setup.expectations(&jobs_queue),
            memory: Arc::clone(&caches.memory),
            orphans_queue: orphans_queue.clone(),
            metrics: JobMetrics::register(setup.metrics()),
        };
        setup.count_held(
            &jobs_queue,
            "job_controller_stale_sync_skips",
            "Total number of Job syncs skipped due to a stale watch cache",
        );
        follow(setup, &caches, informers, &writer.metrics, [&jobs_queue, &orphans_queue]);

        let orphans_ctx = setup.context(&orphans_queue);
        let orphans = OrphanPodController {
            caches: Arc::clone(&caches),
            writer: orphan::Writer { ctx: orphans_ctx.clone() },
            jobs_queue: jobs_queue.clone(),
            ctx: orphans_ctx,
        };
        let unseen = UnseenPodController {
            caches: Arc::clone(&caches),
            ctx: setup.context(&unseen_queue),
            orphans_queue: orphans_queue.clone(),
        };
        let (at_start, on_restore) = (unseen_queue.clone(), unseen_queue.clone());
        setup.at_start(move || at_start.add(&all_pods(), Cause::Event));
        let memory = Arc::clone(&caches.memory);
        setup.on_restore(move || {
            memory.start_over();
            on_restore.add(&all_pods(), Cause::Event);
        });
        let jobs = JobController { caches, writer, ctx };
        setup.work(Arc::new(jobs), &jobs_queue, flags.concurrent_job_syncs);
        setup.work(Arc::new(orphans), &orphans_queue, flags.concurrent_job_syncs);
        setup.work(Arc::new(unseen), &unseen_queue, 1);
    }
}

/// Watches Jobs, and pods while a Job counts some: those with the label that Jobs select by, and all pods in the
/// namespaces of Jobs that may own others.
///
/// Pods of finished Jobs need no watch: those with the finalizer are in the orphans' queue by then, which reads them
/// live.
fn follow(
    setup: &mut Setup,
    caches: &Arc<Caches>,
    Informers { mut jobs, mut pods }: Informers,
    metrics: &JobMetrics,
    [jobs_queue, orphans_queue]: [&Queue; 2],
) {
    let tracking = TrackingEffects { memory: Arc::clone(&caches.memory), metrics: metrics.clone() };
    let (known, tracked, vanished) = (Arc::clone(caches), tracking.clone(), orphans_queue.clone());
    jobs.on_change(move |change| tracking.carry_out(tracked_job_changed(change)));
    pods.on_change(move |change| {
        // Before the memory forgets the finalizer.
        known.vanished(change).into_iter().for_each(|pod| vanished.add(pod, Cause::Event));
        tracked.carry_out(known.tracked_pod_changed(change));
    });
    let effects = setup.effects(jobs_queue);
    jobs.on_change(effects.with(changes::job_changed));
    pods.on_change(effects.of(caches, Caches::pod_changed));
    let effects = setup.effects(orphans_queue);
    jobs.on_change(effects.of(caches, Caches::orphaning_job_changed));
    pods.on_change(effects.of(caches, Caches::orphan_pod_changed));
    let need = jobs.need(Job::counts_pods);
    let whole = jobs.need(|job| job.counts_pods() && job.selects_unlabelled());
    setup.watch(jobs);
    setup.watch_while_and_beside(pods, &need, &whole);
}

pub struct JobController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for JobController {
    /// Upstream: `syncJob`, `pkg/controller/job/job_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.ctx.now();
        let Writer { expectations, metrics, .. } = &self.writer;
        let Some(observed) = self.caches.observe(expectations, key, now) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let observed = match plan_template_read(&observed, now) {
            None => observed,
            Some(live_read) => {
                self.ctx.decide(key, &live_read);
                let job = complete(self.ctx.control(), &observed.job).await?;
                Observed { job, ..observed }
            }
        };
        let plan = plan(&observed, now);
        self.ctx.decide(key, &plan);
        let action = action(&plan);
        let outcome = self.writer.apply(&observed, plan).await;
        metrics.count_created(&outcome.executed, outcome.failure.is_some());
        let result = self.track(&observed, &outcome.executed, now).await.and_then(|()| requeue(outcome));
        if let Some(action) = action {
            let took = Duration::try_from(now.duration_until(self.ctx.now())).unwrap_or_default();
            metrics.observe_sync(&observed.job, action, result.is_ok(), took);
        }
        result
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Job::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let now = self.ctx.now();
        let Some(observed) = self.caches.observe(&self.writer.expectations, key, now) else { return Vec::new() };
        if let Some(live_read) = plan_template_read(&observed, now) {
            return vec![stage(&live_read)];
        }
        let plan = plan(&observed, now);
        let mut stages = vec![stage(&plan)];
        let tracking = plan.into_unwritten().and_then(|executed| plan_tracking(&observed, &executed, now));
        stages.extend(tracking.map(|tracking| stage(&tracking)));
        stages
    }
}

impl JobController {
    /// The second stage, which counts the pods that have ended.
    async fn track(&self, observed: &Observed, executed: &Executed, now: Timestamp) -> anyhow::Result<()> {
        let Some(tracking) = plan_tracking(observed, executed, now) else { return Ok(()) };
        self.ctx.decide(&observed.job.metadata.key, &tracking);
        let tracked = self.writer.apply_tracking(observed, tracking).await;

        if let Some(LastStatus { status, ended }) = next_status(&tracked, self.ctx.now()) {
            self.writer.write_status(observed, &tracked, &status, ended.as_ref()).await?;
        }
        let Tracked { version: _, status: _, tracked: _, end: _, failure, error } = tracked;
        match (error, failure) {
            (Some(error), _) => Err(error),
            (None, Some(error)) => Err(error).context("cannot remove finalizers"),
            (None, None) => Ok(()),
        }
    }
}

/// The error of a sync, or when to sync the Job again.
fn requeue(outcome: Outcome) -> anyhow::Result<Requeue> {
    let Outcome { executed: _, wake, failure, error } = outcome;
    match error.or(failure) {
        Some(error) => Err(error),
        None => Ok(Requeue::earliest([wake])),
    }
}
