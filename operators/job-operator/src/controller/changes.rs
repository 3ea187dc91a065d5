//! Which Jobs are synced when a Job or a pod changes.

pub mod orphan_pods;
pub mod tracking;

use std::sync::Arc;
use std::time::Duration;

use shared::api::labels::Labels;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::observe::Caches;

/// How long a Job waits for more changes of its pods before it is synced.
///
/// Upstream: `SyncJobBatchPeriod`, `pkg/controller/job/job_controller.go`.
pub const SYNC_JOB_BATCH_PERIOD: Duration = Duration::from_secs(1);

pub(super) const BATCH: &str = "a batch of changes";

/// Upstream: `addJob`, `updateJob` and `deleteJob`, `pkg/controller/job/job_controller.go`.
pub fn job_changed(change: Change<'_, Job>) -> Vec<Effect> {
    let meta = &change.latest().metadata;
    let key = meta.key.clone();
    match change {
        Change::Added(_) => vec![Effect::Enqueue(key, Cause::Edit)],
        Change::Updated { old, new }
            if !new.status.is_finished() && old.metadata.generation != new.metadata.generation =>
        {
            vec![Effect::Enqueue(key, Cause::Edit)]
        }
        // A finished Job is synced once more, to forget its memory.
        Change::Updated { old: _, new } => vec![enqueue_later(new)],
        Change::Deleted(_) => vec![Effect::Forget(key.clone(), meta.uid), Effect::Enqueue(key, Cause::Event)],
    }
}

impl Caches {
    /// Upstream: `addPod`, `updatePod` and `deletePod`, `pkg/controller/job/job_controller.go`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        match change {
            // A pod that is first seen while it is being deleted is not one of the expected creations.
            Change::Added(pod) if pod.metadata.is_being_deleted() => self.pod_deleted(pod),
            Change::Added(pod) => self.pod_added(pod),
            Change::Updated { old, new } if old.is_alike(new) => Vec::new(),
            Change::Updated { old: _, new } if new.metadata.is_being_deleted() => self.pod_deleted(new),
            Change::Updated { old, new } => self.pod_updated(old, new),
            Change::Deleted(pod) => self.pod_deleted(pod),
        }
    }

    fn pod_added(&self, pod: &Pod) -> Vec<Effect> {
        if pod.metadata.controller.is_none() {
            return self.selecting(pod);
        }
        let created = |job: &Arc<Job>| [Effect::CreationObserved(job.metadata.key.clone()), enqueue_later(job)];
        self.claims.resolve(pod).iter().flat_map(created).collect()
    }

    fn pod_updated(&self, old: &Pod, new: &Pod) -> Vec<Effect> {
        let has_other_owner = old.metadata.controller != new.metadata.controller;
        let before = if has_other_owner { self.claims.resolve(old) } else { None };
        let mut effects: Vec<Effect> = before.iter().map(enqueue_later).collect();
        if new.metadata.controller.is_some() {
            effects.extend(self.claims.resolve(new).iter().map(enqueue_later));
        } else if has_other_owner || old.metadata.labels != new.metadata.labels {
            effects.extend(self.selecting(new));
        }
        effects
    }

    fn pod_deleted(&self, pod: &Pod) -> Vec<Effect> {
        let deleted =
            |job: Arc<Job>| [Effect::DeletionObserved(job.metadata.key.clone(), pod.metadata.uid), enqueue_later(&job)];
        self.counting_job(pod).into_iter().flat_map(deleted).collect()
    }

    /// The Jobs that may adopt an orphan.
    ///
    /// Upstream: `getPodJobs`, `pkg/controller/job/job_controller.go`.
    fn selecting(&self, orphan: &Pod) -> Vec<Effect> {
        let selects =
            |job: &Job, labels: &Labels| job.spec.selector.as_ref().is_ok_and(|selector| selector.matches(labels));
        self.claims.selecting(orphan, selects).iter().map(enqueue_later).collect()
    }

    /// The Job of a pod, unless it is finished and does not count the pod.
    pub(super) fn counting_job(&self, pod: &Pod) -> Option<Arc<Job>> {
        self.claims.resolve(pod).filter(|job| !job.status.is_finished())
    }
}

fn enqueue_later(job: &Arc<Job>) -> Effect {
    Effect::EnqueueAfter(job.metadata.key.clone(), SYNC_JOB_BATCH_PERIOD, BATCH)
}
