//! Takes the tracking finalizer from pods that no Job will count, and its owner from one that its Job does not select.
//!
//! Left out: the labels of such a pod and its fate, which are the garbage collector's and its user's.

use anyhow::Context;
use shared::api::object::Key;
use shared::api::owner::release_patch;
use shared::api::resource::PODS;
use shared::runtime::api_error::ApiError;
use shared::runtime::control::{Control, Patch};

use super::release_pod;
use crate::objects::JOB_TRACKING_FINALIZER;
use crate::observe::OrphanPod;
use crate::plan::orphan::OrphanPlan;

/// Writes for pods that no Job counts.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The Job that has a pod less.
    pub(crate) disowned_by: Option<Key>,
    /// Why the finalizer could not be removed.
    pub(crate) error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &OrphanPod, plan: OrphanPlan) -> Outcome {
        match plan {
            OrphanPlan::Keep(_) => Outcome { disowned_by: None, error: None },
            OrphanPlan::Release(_) => {
                let (key, uid) = (&observed.pod.metadata.key, observed.pod.metadata.uid);
                let released = release_pod(self.control.for_key(key, uid), key, uid).await;
                Outcome { disowned_by: None, error: released.context("cannot remove the finalizer").err() }
            }
            OrphanPlan::Disown(_) => match self.disown(observed).await {
                Ok(()) => {
                    let disowned_by = observed.job.as_ref().map(|job| job.metadata.key.clone());
                    Outcome { disowned_by, error: None }
                }
                Err(error) => {
                    let error = anyhow::Error::from(error).context("cannot release the pod");
                    Outcome { disowned_by: None, error: Some(error) }
                }
            },
        }
    }

    /// Upstream: `ReleasePod`, `pkg/controller/controller_ref_manager.go`.
    async fn disown(&self, observed: &OrphanPod) -> Result<(), ApiError> {
        let OrphanPod { pod, job, is_cached: _, is_job_cached: _ } = observed;
        let (key, uid) = (&pod.metadata.key, pod.metadata.uid);
        let owner = job.as_ref().map(|job| job.metadata.uid).unwrap_or_default();
        let patch = Patch::strategic(&release_patch(owner, &[JOB_TRACKING_FINALIZER]));
        match self.control.for_key(key, uid).patch(&PODS, key, uid, patch).await {
            // Gone, or not the Job's any more: either way it is released.
            Err(error) if !error.is_not_found() && !error.is_invalid() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
