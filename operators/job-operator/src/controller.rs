//! Wiring, and one sync from observation to the last status.
//!
//! Left out: which event wakes which key (`changes`), and pods that no Job counts (`orphan_pods`).

pub mod changes;
mod orphan_pods;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::object::Key;
use shared::controllers::pod_control::PodControl;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::memory::Memory;
use crate::apply::{Outcome, Tracked, Writer, orphan};
use crate::flags::Flags;
use crate::metrics::{JobMetrics, action};
use crate::observe::{Caches, Informers, Observed};
use crate::plan::plan;
use crate::plan::tracking::plan_tracking;
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
            writer: orphan::Writer { control: setup.control(&orphans_queue) },
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
        None => Ok(wake.map_or(Requeue::Done, Requeue::After)),
    }
}
