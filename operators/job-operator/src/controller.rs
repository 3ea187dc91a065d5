//! Wiring, and one sync from observation to the last status.
//!
//! Left out: which event wakes which key ([`caches`]), and pods that no Job counts ([`orphans`]).

pub mod caches;
pub mod orphans;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use shared::api::object::Key;
use shared::controllers::pod_control::PodControl;
use shared::runtime::clock::Clock;
use shared::runtime::control::Control;
use shared::runtime::decisions::Decisions;
use shared::runtime::expectations::Expectations;
use shared::runtime::queue::{Backoff, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::apply::memory::Memory;
use crate::flags::Flags;
use crate::metrics::JobMetrics;
use crate::observe::{Observed, observe};
use crate::plan::tally::Tally;
use crate::plan::tracking::plan_tracking;
use crate::plan::{Plan, Pods, Reason, plan};
use crate::status::next_status;
use caches::{Caches, Effect, SYNC_JOB_BATCH_PERIOD};
use orphans::OrphanController;

/// Upstream: `DefaultJobApiBackOff` and `MaxJobApiBackOff`, `pkg/controller/job/job_controller.go`; there the longest
/// wait is a minute.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

/// The operator as a process.
pub struct JobOperator;

impl Operator for JobOperator {
    const NAMES: Names =
        Names { operator: "job-operator", controller: "job-controller", event_source: "job-controller" };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let jobs_queue = setup.queue("job", BACKOFF);
        let orphans_queue = setup.queue("job_orphan_pod", BACKOFF);
        let (caches, mut jobs, mut pods) = Caches::new();
        let caches = Arc::new(caches);
        let control = setup.control(&jobs_queue);
        let writer = Writer {
            pods: PodControl::new(control.clone(), setup.recorder()),
            control,
            recorder: setup.recorder(),
            expectations: Arc::new(Expectations::new()),
            memory: Arc::new(Memory::default()),
            metrics: JobMetrics::register(setup.metrics()),
            clock: setup.clock(),
        };
        let (expectations, memory) = (Arc::clone(&writer.expectations), Arc::clone(&writer.memory));
        setup.on_restore(move || {
            expectations.start_over();
            memory.start_over();
        });
        let (known, taker) = (Arc::clone(&caches), Taker::new(&writer, &jobs_queue, &orphans_queue));
        jobs.on_change(move |change| known.job_changed(change).into_iter().for_each(|effect| taker.take(effect)));
        let (known, taker) = (Arc::clone(&caches), Taker::new(&writer, &jobs_queue, &orphans_queue));
        pods.on_change(move |change| known.pod_changed(change).into_iter().for_each(|effect| taker.take(effect)));
        setup.watch(jobs);
        setup.watch(pods);

        let orphans = OrphanController {
            caches: Arc::clone(&caches),
            control: setup.control(&orphans_queue),
            clock: setup.clock(),
            decisions: setup.decisions(&orphans_queue),
        };
        let jobs = JobController { caches, writer, clock: setup.clock(), decisions: setup.decisions(&jobs_queue) };
        setup.work(Arc::new(jobs), &jobs_queue, flags.concurrent_job_syncs);
        setup.work(Arc::new(orphans), &orphans_queue, flags.concurrent_job_syncs);
    }
}

/// Makes come true what follows from a change.
struct Taker {
    expectations: Arc<Expectations>,
    memory: Arc<Memory>,
    control: Control,
    metrics: JobMetrics,
    jobs: Queue,
    orphans: Queue,
}

impl Taker {
    fn new(writer: &Writer, jobs: &Queue, orphans: &Queue) -> Self {
        Self {
            expectations: Arc::clone(&writer.expectations),
            memory: Arc::clone(&writer.memory),
            control: writer.control.clone(),
            metrics: writer.metrics.clone(),
            jobs: jobs.clone(),
            orphans: orphans.clone(),
        }
    }

    fn take(&self, effect: Effect) {
        match effect {
            Effect::Enqueue(key, cause) => self.jobs.add(&key, cause),
            Effect::Gather(key) => self.jobs.add_after(&key, SYNC_JOB_BATCH_PERIOD),
            Effect::Orphan(pod) => self.orphans.add(&pod, shared::runtime::queue::Cause::Event),
            Effect::CreationObserved(key) => self.expectations.creations_observed(&key, 1),
            Effect::DeletionObserved(key, pod) => self.expectations.deletion_observed(&key, pod),
            Effect::ReleaseObserved(key, pod) => self.memory.release_observed(&key, pod),
            Effect::Forget(key, uid) => {
                self.expectations.forget(&key);
                self.memory.forget(&key);
                self.control.forget(&key, Some(uid));
            }
            Effect::External(controller) => self.metrics.count_external(&controller),
            Effect::Tracked(is_added) => self.metrics.count_tracked(is_added),
        }
    }
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
        let Writer { expectations, memory, .. } = &self.writer;
        let Some(observed) = observe(&self.caches, expectations, memory, key, now) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let mut plan = plan(&observed, now);
        self.decisions.record(now, key, &plan);
        let Some(tally) = plan.tally.take() else {
            self.leave(&observed, &plan);
            return Ok(Requeue::Done);
        };
        let outcome = self.carry_out(&observed, &mut plan, &tally, now).await;
        let took = Duration::try_from(now.duration_until(self.clock.now())).unwrap_or_default();
        self.writer.metrics.observe_sync(&observed.job, &plan, outcome.is_ok(), took);
        outcome
    }

    fn held(&self, resource: &str) {
        self.writer.metrics.observe_held(resource);
    }
}

impl JobController {
    /// Pods; the status that counts, and the finalizers; the status after that.
    async fn carry_out(
        &self,
        observed: &Observed,
        plan: &mut Plan,
        tally: &Tally,
        now: Timestamp,
    ) -> anyhow::Result<Requeue> {
        let key = &observed.job.metadata.key;
        let outcome = self.writer.apply(&observed.job, plan).await?;
        self.writer.metrics.count_created(tally, &outcome);

        let tracking = plan_tracking(plan, tally, &outcome, now);
        self.decisions.record(now, key, &tracking);
        let tracked = self.writer.track(&tracking).await?;

        let finish = next_status(&tracking, &tracked.kept, self.clock.now());
        self.writer.finish(&tracking, tracked, &finish).await?;
        match outcome.failure {
            Some(failure) => bail!(failure),
            None => Ok(plan.wake.map_or(Requeue::Done, Requeue::After)),
        }
    }

    /// A Job that nothing is to be done about.
    fn leave(&self, observed: &Observed, plan: &Plan) {
        match &plan.pods {
            Pods::Leave(Reason::Finished) => self.writer.forget(&observed.job.metadata.key),
            Pods::Leave(Reason::UnknownCompletionMode) => self.writer.tell_unknown_completion_mode(&observed.job),
            // An edit brings it back; until then there is nothing to say of it.
            Pods::Leave(Reason::InvalidSelector(invalid)) => {
                tracing::warn!(key = %observed.job.metadata.key, error = %invalid, "invalid selector");
            }
            Pods::Leave(_) | Pods::End(_) | Pods::Delete(_) | Pods::Create(_) => {}
        }
    }
}
