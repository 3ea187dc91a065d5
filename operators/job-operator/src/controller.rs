//! Wiring, and one sync from observation to the last status.
//!
//! Left out: which event wakes which key (`changes`), and pods that no Job counts (`orphan_pods`).

pub mod changes;
pub mod orphan_pods;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use shared::api::object::Key;
use shared::controllers::pod_control::PodControl;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::apply::memory::Memory;
use crate::flags::Flags;
use crate::metrics::JobMetrics;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::tally::Tally;
use crate::plan::tracking::plan_tracking;
use crate::plan::{Plan, Pods, Reason, plan};
use crate::status::next_status;
use changes::tracking::TrackingEffects;
use orphan_pods::OrphanPodController;

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
        let (caches, Informers { mut jobs, mut pods }) = Caches::new();
        let caches = Arc::new(caches);
        let control = setup.control(&jobs_queue);
        let writer = Writer {
            pods: PodControl::new(control.clone(), setup.recorder()),
            control,
            recorder: setup.recorder(),
            expectations: setup.expectations(&jobs_queue),
            memory: Arc::new(Memory::default()),
            metrics: JobMetrics::register(setup.metrics()),
            clock: setup.clock(),
        };
        let memory = Arc::clone(&writer.memory);
        setup.on_restore(move || memory.start_over());

        let tracking = TrackingEffects { memory: Arc::clone(&writer.memory), metrics: writer.metrics.clone() };
        let (known, tracked) = (Arc::clone(&caches), tracking.clone());
        jobs.on_change(move |change| tracking.carry_out(Caches::tracked_job_changed(change)));
        pods.on_change(move |change| tracked.carry_out(known.tracked_pod_changed(change)));
        let effects = setup.effects(&jobs_queue);
        jobs.on_change(effects.of(&caches, |_, change| Caches::job_changed(change)));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        let effects = setup.effects(&orphans_queue);
        jobs.on_change(effects.of(&caches, Caches::orphaning_job_changed));
        pods.on_change(effects.of(&caches, Caches::orphan_pod_changed));
        setup.watch(jobs);
        setup.watch(pods);

        let orphans = OrphanPodController {
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
        let Some(observed) = self.caches.observe(expectations, memory, key, now) else {
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
