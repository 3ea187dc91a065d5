//! Takes the tracking finalizer from pods that no Job will count: those without a Job, or of one that is over.
//!
//! Left out: the labels of such a pod and its fate, which are the garbage collector's and its user's.
//!
//! Upstream: `syncOrphanPod`, `pkg/controller/job/job_controller.go`.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::runtime::cache::Change;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, Written};
use shared::runtime::decisions::Decisions;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::release_pod;
use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::observe::Caches;
use crate::plan::orphan::{OrphanPlan, Release, plan_orphan};

/// Syncs pods that may have lost the Job which counts them.
pub struct OrphanPodController {
    /// Jobs and pods.
    pub caches: Arc<Caches>,
    /// Every request.
    pub control: Control,
    /// For the record of decisions.
    pub clock: Clock,
    /// The record of decisions.
    pub decisions: Decisions,
}

impl Controller for OrphanPodController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(pod) = self.caches.pods.get(key) else { return Ok(Requeue::Done) };
        let job = self.caches.claims.resolve(&pod);
        let plan = plan_orphan(&pod, job.as_deref());
        self.decisions.record(self.clock.now(), key, &plan);
        match plan {
            OrphanPlan::Keep(_) => {}
            OrphanPlan::Release(Release::Gone) if self.is_job_there(&pod).await? => {}
            OrphanPlan::Release(_) => {
                let uid = pod.metadata.uid;
                release_pod(self.control.for_key(key, uid), key, uid).await.context("cannot remove the finalizer")?;
            }
        }
        Ok(Requeue::Done)
    }
}

impl OrphanPodController {
    /// Whether a Job that the cache does not have is there all the same: pods are watched apart from Jobs, so a pod may
    /// be seen before its Job. A cache that has come further than the pod's last change has seen its Job, if there is one.
    async fn is_job_there(&self, pod: &Pod) -> anyhow::Result<bool> {
        let meta = &pod.metadata;
        let Some(controller) = &meta.controller else { return Ok(false) };
        if self.caches.jobs.progress().resource_version >= meta.resource_version {
            return Ok(false);
        }
        let job = Key::new(meta.namespace(), &controller.name);
        match self.control.get::<Written>(&JOBS, &job).await {
            Ok(live) => Ok(live.metadata.uid == controller.uid),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error).context("cannot look whether the Job is there"),
        }
    }
}

impl Caches {
    /// Which pods nobody will count any more once a Job has changed.
    pub fn orphaning_job_changed(&self, change: Change<'_, Job>) -> Vec<Effect> {
        match change {
            Change::Deleted(job) => self.orphans_of(job),
            Change::Updated { old: _, new } if new.status.is_finished() => self.orphans_of(new),
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
        }
    }

    fn orphans_of(&self, job: &Job) -> Vec<Effect> {
        self.claims.owned(job).iter().filter_map(|pod| orphan(pod)).collect()
    }

    /// Whether nobody counts a pod that has changed. Its Job may be gone, or not listed yet, which its sync finds out.
    pub fn orphan_pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let pod = match change {
            Change::Deleted(_) => return Vec::new(),
            Change::Updated { old, new } if old.is_alike(new) => return Vec::new(),
            // The end of its Job, or the pod's own, tells of it.
            Change::Updated { old: _, new }
                if !new.metadata.is_being_deleted() && new.metadata.controller.is_some() =>
            {
                return Vec::new();
            }
            Change::Added(pod) | Change::Updated { old: _, new: pod } => pod,
        };
        if self.counting_job(pod).is_some() { Vec::new() } else { orphan(pod).into_iter().collect() }
    }
}

fn orphan(pod: &Pod) -> Option<Effect> {
    pod.has_tracking_finalizer().then(|| Effect::Enqueue(pod.metadata.key.clone(), Cause::Event))
}
