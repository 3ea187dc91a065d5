//! Removes the tracking finalizer of pods that no Job will count, and the owner of one that its Job does not select.

use anyhow::Context;
use shared::api::object::Key;
use shared::api::owner::release_patch;
use shared::api::resource::PODS;
use shared::transport::api_error::ApiError;
use shared::working::context::ControllerContext;
use shared::working::control::Patch;

use super::release_pod;
use crate::objects::JOB_TRACKING_FINALIZER;
use crate::observe::OrphanPod;
use crate::plan::orphan::OrphanPlan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &OrphanPod, plan: OrphanPlan) -> anyhow::Result<Option<Key>> {
        match plan {
            OrphanPlan::Keep(_) => Ok(None),
            OrphanPlan::Release(_) => {
                let (key, uid) = (&observed.pod.metadata.key, observed.pod.metadata.uid);
                release_pod(self.ctx.for_key(key, uid), key, uid).await.context("cannot remove the finalizer")?;
                Ok(None)
            }
            OrphanPlan::Disown(_) => {
                self.disown(observed).await.context("cannot release the pod")?;
                Ok(observed.job.as_ref().map(|job| job.metadata.key.clone()))
            }
        }
    }

    /// Upstream: `ReleasePod`, `pkg/controller/controller_ref_manager.go`.
    async fn disown(&self, observed: &OrphanPod) -> Result<(), ApiError> {
        let OrphanPod { pod, job, is_cached: _, is_job_cached: _ } = observed;
        let (key, uid) = (&pod.metadata.key, pod.metadata.uid);
        let owner = job.as_ref().map(|job| job.metadata.uid).unwrap_or_default();
        let patch = Patch::strategic(&release_patch(owner, &[JOB_TRACKING_FINALIZER]));
        match self.ctx.for_key(key, uid).patch(&PODS, key, uid, patch).await {
            // The pod is gone, or another client has released it.
            Err(error) if !error.is_not_found() && !error.is_invalid() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
