//! Upstream's metrics of this controller.
//!
//! Upstream: `pkg/controller/job/metrics/metrics.go`.

use std::collections::BTreeMap;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::process::metrics::Metrics;

use crate::objects::status::JobStatus;
use crate::objects::{Job, PodFailureAction, PodReplacementPolicy};
use crate::plan::ending::{Ending, JobResult};
use crate::plan::indexed::OrderedIntervals;
use crate::plan::reasons::Reason;
use crate::plan::tracking::Executed;
use crate::plan::{Plan, Pods};

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Histograms = Family<Labels<3>, Histogram, fn() -> Histogram>;

/// The metrics of this operator alone; cheap to clone.
#[derive(Clone)]
pub struct JobMetrics {
    sync_duration: Histograms,
    syncs: Counters<3>,
    finished: Counters<3>,
    pods_finished: Counters<2>,
    policy_actions: Counters<1>,
    tracked_pods: Counters<1>,
    finished_indexes: Counters<2>,
    pods_created: Counters<2>,
    external: Counters<1>,
}

impl JobMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let sync_duration: fn() -> Histogram = || Histogram::new(exponential_buckets(0.004, 2.0, 15));
        let sync_duration = Histograms::new_with_constructor(sync_duration);
        metrics.register(
            "job_controller_job_sync_duration_seconds",
            "The time it took to sync a job",
            sync_duration.clone(),
        );
        Self {
            sync_duration,
            syncs: counters(metrics, "job_controller_job_syncs", "The number of job syncs"),
            finished: counters(metrics, "job_controller_jobs_finished", "The number of finished jobs"),
            pods_finished: counters(
                metrics,
                "job_controller_job_pods_finished",
                "The number of finished Pods that are fully tracked",
            ),
            policy_actions: counters(
                metrics,
                "job_controller_pod_failures_handled_by_failure_policy",
                "The number of failed Pods handled by failure policy with respect to the failure policy action applied \
                 based on the matched rule",
            ),
            tracked_pods: counters(
                metrics,
                "job_controller_terminated_pods_tracking_finalizer",
                "The number of terminated pods (phase=Failed|Succeeded) that have the finalizer \
                 batch.kubernetes.io/job-tracking. The event label can be \"add\" or \"delete\"",
            ),
            finished_indexes: counters(
                metrics,
                "job_controller_job_finished_indexes",
                "The number of finished indexes",
            ),
            pods_created: counters(
                metrics,
                "job_controller_job_pods_creation",
                "The number of Pods created by the Job controller",
            ),
            external: counters(
                metrics,
                "job_controller_jobs_by_external_controller",
                "The number of Jobs managed by an external controller",
            ),
        }
    }

    /// Counts a sync by its [`action`].
    pub fn observe_sync(&self, job: &Job, action: &str, is_ok: bool, took: Duration) {
        let result = if is_ok { "success" } else { "error" };
        let mode = job.spec.completion_mode.as_str().to_owned();
        let labels = [("completion_mode", mode), ("result", result.to_owned()), ("action", action.to_owned())];
        self.sync_duration.get_or_create(&labels).observe(took.as_secs_f64());
        self.syncs.get_or_create(&labels).inc();
    }

    /// Counts the created pods, and a failure to create or delete one.
    pub fn count_created(&self, executed: &Executed, has_failed: bool) {
        let Some(counts) = &executed.counts else { return };
        let reason = if counts.job.spec.pod_replacement_policy == PodReplacementPolicy::Failed && counts.failed > 0 {
            "recreate_failed"
        } else if counts.failed > 0 || counts.terminating().next().is_some() {
            "recreate_terminating_or_failed"
        } else {
            "new"
        };
        let count = |status: &str, count: usize| {
            if count > 0 {
                let labels = [("reason", reason.to_owned()), ("status", status.to_owned())];
                self.pods_created.get_or_create(&labels).inc_by(u64::try_from(count).unwrap_or(u64::MAX));
            }
        };
        count("succeeded", executed.created);
        count("failed", usize::from(has_failed));
    }

    /// Counts the pods and indexes that a new status counts.
    pub fn count_status(&self, job: &Job, before: &JobStatus, after: &JobStatus) {
        let mode = job.spec.completion_mode.as_str();
        let finished = |result: &str, by: i64| {
            if let Some(by) = u64::try_from(by).ok().filter(|by| *by > 0) {
                let labels = [("completion_mode", mode.to_owned()), ("result", result.to_owned())];
                self.pods_finished.get_or_create(&labels).inc_by(by);
            }
        };
        finished("failed", i64::from(after.failed) - i64::from(before.failed));
        if !job.is_indexed() {
            finished("succeeded", i64::from(after.succeeded) - i64::from(before.succeeded));
            return;
        }
        let completions = job.spec.completions.unwrap_or(0);
        let total = |text: &str| OrderedIntervals::parse(text, completions).total();
        let succeeded = total(&after.completed_indexes) - total(&before.completed_indexes);
        finished("succeeded", succeeded);
        self.count_indexes(job, "succeeded", succeeded);
        let failed = |status: &JobStatus| status.failed_indexes.as_deref().map_or(0, total);
        self.count_indexes(job, "failed", failed(after) - failed(before));
    }

    fn count_indexes(&self, job: &Job, status: &str, by: i64) {
        let limit = if job.spec.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
        if let Some(by) = u64::try_from(by).ok().filter(|by| *by > 0) {
            let labels = [("status", status.to_owned()), ("backoffLimit", limit.to_owned())];
            self.finished_indexes.get_or_create(&labels).inc_by(by);
        }
    }

    pub fn count_finished(&self, job: &Job, ended: &Ending) {
        let result = match ended.result {
            JobResult::Succeeded => "succeeded",
            JobResult::Failed => "failed",
        };
        let mode = job.spec.completion_mode.as_str().to_owned();
        let labels =
            [("completion_mode", mode), ("result", result.to_owned()), ("reason", ended.condition_reason.to_string())];
        self.finished.get_or_create(&labels).inc();
    }

    pub fn count_policy_actions(&self, actions: &BTreeMap<PodFailureAction, u64>) {
        for (action, count) in actions {
            self.policy_actions.get_or_create(&[("action", action.as_str().to_owned())]).inc_by(*count);
        }
    }

    /// Counts that an ended pod got or lost the tracking finalizer.
    pub fn count_tracked(&self, is_added: bool) {
        let event = if is_added { "add" } else { "delete" };
        self.tracked_pods.get_or_create(&[("event", event.to_owned())]).inc();
    }

    pub fn count_external(&self, controller: &str) {
        self.external.get_or_create(&[("controller_name", controller.to_owned())]).inc();
    }
}

fn counters<const N: usize>(metrics: &Metrics, name: &'static str, help: &'static str) -> Counters<N>
where
    Labels<N>: prometheus_client::encoding::EncodeLabelSet,
{
    let counters = Counters::<N>::default();
    metrics.register(name, help, counters.clone());
    counters
}

/// The action of a sync as a label; none for a Job that is left alone.
///
/// Upstream: `metrics.JobSyncAction…`.
pub fn action(plan: &Plan) -> Option<&'static str> {
    plan.counts.as_ref()?;
    Some(match (&plan.pods, &plan.reason) {
        (Pods::Delete(_), _) => "pods_deleted",
        // As upstream, also for a sync that must wait with new pods, or has no index for them.
        (Pods::Create(_), _)
        | (Pods::Leave, Reason::Backoff(_) | Reason::NoIndexLeft(_) | Reason::InvalidTemplate { error: _ }) => {
            "pods_created"
        }
        (Pods::Leave, Reason::Parallelism(_) | Reason::WaitingForTerminating(_)) => "tracking",
        (Pods::Leave | Pods::End(_), _) => "reconciling",
    })
}
