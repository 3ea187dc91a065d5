//! Takes the tracking finalizer from pods that no Job will count: those without a Job, or of one that is over.
//!
//! Left out: the labels of such a pod and its fate, which are the garbage collector's and its user's.
//!
//! Upstream: `syncOrphanPod`, `pkg/controller/job/job_controller.go`.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, Written};
use shared::runtime::decisions::Decisions;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::release_pod;
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
