//! What is known of Jobs and pods, and what a change of one of them means to whom.
//!
//! Left out: filling the caches, which is the informers', and what is read for one sync, which
//! [`crate::observe`] says.

use std::sync::Arc;
use std::time::Duration;

use shared::api::intern::Text;
use shared::api::object::{ControllerRef, Key, Object, Uid};
use shared::api::resource::JOBS;
use shared::runtime::cache::{Cache, Change, IndexId, IndexValue};
use shared::runtime::informer::{Informer, InformerBuilder};
use shared::runtime::queue::Cause;

use crate::objects::Job;
use crate::objects::pod::Pod;

/// How long the changes of a Job's pods are gathered before it is synced.
///
/// Upstream: `SyncJobBatchPeriod`, `pkg/controller/job/job_controller.go`.
pub const SYNC_JOB_BATCH_PERIOD: Duration = Duration::from_secs(1);

/// The caches of this operator.
pub struct Caches {
    /// All Jobs.
    pub jobs: Arc<Cache<Job>>,
    /// All pods, those of no Job too.
    pub pods: Arc<Cache<Pod>>,
    jobs_by_namespace: IndexId,
    pods_by_controller: IndexId,
}

/// What follows from a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A Job is to be synced.
    Enqueue(Key, Cause),
    /// A Job is to be synced once more changes of its pods were gathered.
    Gather(Key),
    /// A pod may have a finalizer that means nothing any more.
    Orphan(Key),
    /// One of the pods that a Job waits for has appeared.
    CreationObserved(Key),
    /// A pod of a Job is gone or about to go; it may have waited for that.
    DeletionObserved(Key, Uid),
    /// A pod of a Job has lost its finalizer.
    ReleaseObserved(Key, Uid),
    /// The Job of this uid is gone: nothing that was expected of it counts any more.
    Forget(Key, Uid),
    /// There is a Job that another controller looks after.
    External(Text),
    /// A pod that has ended has the tracking finalizer now, or has it no more.
    Tracked(bool),
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub fn new() -> (Self, Informer<Job>, Informer<Pod>) {
        let (mut jobs, mut pods) = (InformerBuilder::<Job>::new(), InformerBuilder::<Pod>::new());
        let jobs_by_namespace = jobs.index_by_namespace();
        let pods_by_controller = pods.index_by_controller();
        let (jobs, pods) = (jobs.build(), pods.build());
        let caches = Self { jobs: jobs.cache(), pods: pods.cache(), jobs_by_namespace, pods_by_controller };
        (caches, jobs, pods)
    }

    /// The pods whose controller is this Job, and those of its namespace that have none.
    pub fn pods_of(&self, job: &Job) -> Vec<Arc<Pod>> {
        let mut pods = self.pods.controlled_by(self.pods_by_controller, job);
        pods.extend(self.pods.orphans(self.pods_by_controller, job.metadata.namespace()));
        pods
    }

    /// The Job that this reference of a pod means.
    ///
    /// Upstream: `resolveControllerRef`, `pkg/controller/job/job_controller.go`.
    pub fn resolve(&self, pod: &Pod, controller: Option<&Arc<ControllerRef>>) -> Option<Arc<Job>> {
        let controller = controller.filter(|controller| controller.kind == *JOBS.kind)?;
        self.jobs.get_with_uid(pod.metadata.namespace(), &controller.name, controller.uid)
    }

    /// The Jobs that may adopt an orphan.
    ///
    /// Upstream: `getPodJobs`.
    fn selecting(&self, pod: &Pod) -> Vec<Effect> {
        let labels = &pod.metadata.labels;
        if labels.is_empty() {
            return Vec::new();
        }
        let namespace = IndexValue::Text(Text::new(pod.metadata.namespace()));
        let mut jobs = self.jobs.by_index(self.jobs_by_namespace, &namespace);
        jobs.retain(|job| job.spec.selector.as_ref().is_ok_and(|selector| selector.matches(labels)));
        if jobs.len() > 1 {
            tracing::warn!(pod = %pod.metadata.key, count = jobs.len(), "several Jobs select one pod");
        }
        jobs.iter().map(|job| Effect::Gather(job.metadata.key.clone())).collect()
    }

    /// What a change of a Job means.
    ///
    /// Upstream: `addJob`, `updateJob` and `deleteJob`.
    pub fn job_changed(&self, change: Change<'_, Job>) -> Vec<Effect> {
        let key = change.latest().metadata.key.clone();
        match change {
            Change::Added(job) => {
                let external = job.external_controller().map(|name| Effect::External(Text::new(name)));
                external.into_iter().chain([Effect::Enqueue(key, Cause::Edit)]).collect()
            }
            Change::Updated { old: _, new } if new.status.is_finished() => {
                // One more sync, to forget what is remembered of it.
                let mut effects = self.orphans_of(new);
                effects.push(Effect::Gather(key));
                effects
            }
            Change::Updated { old, new } if old.metadata.generation != new.metadata.generation => {
                vec![Effect::Enqueue(key, Cause::Edit)]
            }
            Change::Updated { .. } => vec![Effect::Gather(key)],
            Change::Deleted(job) => {
                let mut effects = self.orphans_of(job);
                effects.push(Effect::Forget(key.clone(), job.metadata.uid));
                effects.push(Effect::Enqueue(key, Cause::Event));
                effects
            }
        }
    }

    /// The pods that nobody will count any more.
    fn orphans_of(&self, job: &Job) -> Vec<Effect> {
        let pods = self.pods.controlled_by(self.pods_by_controller, job);
        let tracked = pods.iter().filter(|pod| pod.has_tracking_finalizer());
        tracked.map(|pod| Effect::Orphan(pod.metadata.key.clone())).collect()
    }

    /// What a change of a pod means.
    ///
    /// Upstream: `addPod`, `updatePod` and `deletePod`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let waits = |pod: &Pod| pod.phase.is_terminal() && pod.has_tracking_finalizer();
        let (before, after) = match change {
            Change::Added(pod) => (false, waits(pod)),
            Change::Updated { old, new } => (waits(old), waits(new)),
            Change::Deleted(pod) => (waits(pod), false),
        };
        let tracked = (before != after).then_some(Effect::Tracked(after));
        let effects = match change {
            // A pod that is first seen on its way out was not made for the expectations of today.
            Change::Added(pod) if pod.metadata.is_being_deleted() => self.pod_deleted(pod, false),
            Change::Added(pod) => self.pod_added(pod),
            Change::Updated { old, new } if old.is_alike(new) => Vec::new(),
            Change::Updated { old: _, new } if new.metadata.is_being_deleted() => self.pod_deleted(new, false),
            Change::Updated { old, new } => self.pod_updated(old, new),
            Change::Deleted(pod) => self.pod_deleted(pod, true),
        };
        tracked.into_iter().chain(effects).collect()
    }

    fn pod_added(&self, pod: &Pod) -> Vec<Effect> {
        let mut effects = orphan(pod);
        match (&pod.metadata.controller, self.resolve(pod, pod.metadata.controller.as_ref())) {
            (None, _) => effects.extend(self.selecting(pod)),
            // Its Job may be gone, or not listed yet; who looks at the orphan looks at that too.
            (Some(_), None) => {}
            (Some(_), Some(job)) => {
                if !job.status.is_finished() {
                    effects.clear();
                }
                let key = &job.metadata.key;
                effects.extend([Effect::CreationObserved(key.clone()), Effect::Gather(key.clone())]);
            }
        }
        effects
    }

    fn pod_updated(&self, old: &Pod, new: &Pod) -> Vec<Effect> {
        let (before, now) = (old.metadata.controller.as_ref(), new.metadata.controller.as_ref());
        let seen = |job: Arc<Job>| {
            let key = job.metadata.key.clone();
            let is_released = !new.has_tracking_finalizer();
            let released = is_released.then(|| Effect::ReleaseObserved(key.clone(), new.metadata.uid));
            released.into_iter().chain([Effect::Gather(key)])
        };
        let mut effects = Vec::new();
        if before != now {
            effects.extend(self.resolve(old, before).into_iter().flat_map(seen));
        }
        if now.is_some() {
            effects.extend(self.resolve(new, now).into_iter().flat_map(seen));
            return effects;
        }
        effects.extend(orphan(new));
        if before != now || old.metadata.labels != new.metadata.labels {
            effects.extend(self.selecting(new));
        }
        effects
    }

    /// A pod that is being deleted, or with `is_gone` that is gone.
    fn pod_deleted(&self, pod: &Pod, is_gone: bool) -> Vec<Effect> {
        let job = self.resolve(pod, pod.metadata.controller.as_ref());
        let Some(job) = job.filter(|job| !job.status.is_finished()) else {
            return if is_gone { Vec::new() } else { orphan(pod) };
        };
        let (key, uid) = (&job.metadata.key, pod.metadata.uid);
        let mut effects = vec![Effect::DeletionObserved(key.clone(), uid)];
        if is_gone || !pod.has_tracking_finalizer() {
            effects.push(Effect::ReleaseObserved(key.clone(), uid));
        }
        effects.push(Effect::Gather(key.clone()));
        effects
    }
}

fn orphan(pod: &Pod) -> Vec<Effect> {
    let key = pod.has_tracking_finalizer().then(|| pod.meta().key.clone());
    key.map(Effect::Orphan).into_iter().collect()
}
