//! Wiring, and one sync from observation to the last status.
//!
//! Left out: which event wakes which key (`changes`), and pods that no Job counts (`orphan_pods`, `unseen_pods`).

pub mod changes;
mod orphan_pods;
mod unseen_pods;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::pod_control::PodControl;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::memory::Memory;
use crate::apply::{Outcome, Tracked, Writer, orphan};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::{JobMetrics, action};
use crate::objects::Job;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::plan;
use crate::plan::tracking::plan_tracking;
use crate::status::next_status;
use changes::tracking::TrackingEffects;
use orphan_pods::OrphanPodController;
use unseen_pods::{UnseenPodController, all_pods};

/// Upstream: `DefaultJobApiBackOff` and `MaxJobApiBackOff`, `pkg/controller/job/job_controller.go`; there the longest
/// wait is a minute.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

/// The operator as a process.
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
        let control = setup.control(&jobs_queue);
        let writer = Writer {
            pods: PodControl::new(control.clone(), setup.recorder()),
            control,
            recorder: setup.recorder(),
            expectations: setup.expectations(&jobs_queue),
            memory: Arc::new(Memory::default()),
            orphans_queue: orphans_queue.clone(),
            metrics: JobMetrics::register(setup.metrics()),
            clock: setup.clock(),
        };
        follow(setup, &caches, informers, &writer, [&jobs_queue, &orphans_queue]);

        let orphans = OrphanPodController {
            caches: Arc::clone(&caches),
            writer: orphan::Writer { control: setup.control(&orphans_queue) },
            jobs_queue: jobs_queue.clone(),
            clock: setup.clock(),
            decisions: setup.decisions(&orphans_queue),
        };
        let control = setup.control(&unseen_queue);
        let unseen = UnseenPodController { caches: Arc::clone(&caches), control, orphans_queue: orphans_queue.clone() };
        let (at_start, on_restore) = (unseen_queue.clone(), unseen_queue.clone());
        setup.at_start(move || at_start.add(&all_pods(), Cause::Event));
        let memory = Arc::clone(&writer.memory);
        setup.on_restore(move || {
            memory.start_over();
            on_restore.add(&all_pods(), Cause::Event);
        });
        let jobs = JobController { caches, writer, clock: setup.clock(), decisions: setup.decisions(&jobs_queue) };
        setup.work(Arc::new(jobs), &jobs_queue, flags.concurrent_job_syncs);
        setup.work(Arc::new(orphans), &orphans_queue, flags.concurrent_job_syncs);
        setup.work(Arc::new(unseen), &unseen_queue, 1);
    }
}

/// Declares that Jobs are followed, and pods while a Job counts some: those with the label that Jobs select by, and where a
/// Job may own others, all of its namespace. What changes them fills the queues, of Jobs and of orphans.
///
/// Pods whose Job has ended need no watch: those that have the finalizer are in the orphans' queue by then, and are read live
/// once the cache has forgotten them.
fn follow(
    setup: &mut Setup,
    caches: &Arc<Caches>,
    Informers { mut jobs, mut pods }: Informers,
    writer: &Writer,
    [jobs_queue, orphans_queue]: [&Queue; 2],
) {
    let tracking = TrackingEffects { memory: Arc::clone(&writer.memory), metrics: writer.metrics.clone() };
    let (known, tracked) = (Arc::clone(caches), tracking.clone());
    let (memory, questioned) = (Arc::clone(&writer.memory), orphans_queue.clone());
    jobs.on_change(move |change| tracking.carry_out(Caches::tracked_job_changed(change)));
    pods.on_change(move |change| {
        // Before its finalizer is forgotten.
        known.vanished(change, &memory).into_iter().for_each(|pod| questioned.add(pod, Cause::Event));
        tracked.carry_out(known.tracked_pod_changed(change));
    });
    let effects = setup.effects(jobs_queue);
    jobs.on_change(effects.of(caches, |_, change| Caches::job_changed(change)));
    pods.on_change(effects.of(caches, Caches::pod_changed));
    let effects = setup.effects(orphans_queue);
    jobs.on_change(effects.of(caches, Caches::orphaning_job_changed));
    pods.on_change(effects.of(caches, Caches::orphan_pod_changed));
    let need = jobs.need(Job::counts_pods);
    let whole = jobs.need(|job| job.counts_pods() && job.selects_unlabelled());
    setup.watch(jobs);
    setup.watch_while_and_beside(pods, &need, &whole);
}

/// Syncs Jobs.
pub struct JobController {
    caches: Arc<Caches>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for JobController {
    /// Upstream: `syncJob`, `pkg/controller/job/job_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.clock.now();
        let Writer { expectations, memory, metrics, .. } = &self.writer;
        let Some(observed) = self.caches.observe(expectations, memory, key, now) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed, now);
        self.decisions.record(now, key, &plan);
        let action = action(&plan);
        let outcome = self.writer.apply(&observed, plan).await;
        metrics.count_created(&outcome);
        let result = self.track(&observed, &outcome, now).await.and_then(|()| requeue(outcome));
        if let Some(action) = action {
            let took = Duration::try_from(now.duration_until(self.clock.now())).unwrap_or_default();
            metrics.observe_sync(&observed.job, action, result.is_ok(), took);
        }
        result
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Job::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let now = self.clock.now();
        let Writer { expectations, memory, .. } = &self.writer;
        let Some(observed) = self.caches.observe(expectations, memory, key, now) else { return Vec::new() };
        let plan = plan(&observed, now);
        let mut stages = vec![stage(&plan)];
        if plan.is_empty() {
            // Nothing is written before what is counted.
            let outcome = Outcome::without_writes(plan);
            stages.extend(plan_tracking(&observed, &outcome, now).map(|tracking| stage(&tracking)));
        }
        stages
    }

    fn held(&self, resource: &str) {
        self.writer.metrics.observe_held(resource);
    }
}

impl JobController {
    /// The second stage, for what has ended is counted once pods were made and deleted.
    async fn track(&self, observed: &Observed, outcome: &Outcome, now: Timestamp) -> anyhow::Result<()> {
        let Some(tracking) = plan_tracking(observed, outcome, now) else { return Ok(()) };
        self.decisions.record(now, &observed.job.metadata.key, &tracking);
        let tracked = self.writer.apply_tracking(observed, tracking).await;

        if let Some(last) = next_status(&tracked, self.clock.now()) {
            self.writer.write_status(observed, &tracked, &last).await?;
        }
        let Tracked { version: _, status: _, tracked: _, end: _, failure, error } = tracked;
        match (error, failure) {
            (Some(error), _) => Err(error),
            (None, Some(error)) => Err(error).context("cannot remove finalizers"),
            (None, None) => Ok(()),
        }
    }
}

/// The error of a sync, or when to look at its Job again, should nothing happen.
fn requeue(outcome: Outcome) -> anyhow::Result<Requeue> {
    let Outcome { counts: _, ending: _, created: _, deleted: _, wake, failure, error } = outcome;
    match error.or_else(|| failure.map(anyhow::Error::msg)) {
        Some(error) => Err(error),
        None => Ok(Requeue::earliest([wake])),
    }
}
