//! Takes the tracking finalizer from pods that no Job will count.
//!
//! Left out: the labels of such a pod and its fate, which are the garbage collector's and its user's.

use anyhow::Context;
use shared::runtime::control::Control;

use super::release_pod;
use crate::observe::OrphanPod;
use crate::plan::orphan::OrphanPlan;

/// What writes for pods without a Job that counts them.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// How far a plan came.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Why the finalizer could not be removed.
    pub(crate) error: Option<anyhow::Error>,
}

impl Writer {
    /// Does what was planned.
    pub(crate) async fn apply(&self, observed: &OrphanPod, plan: OrphanPlan) -> Outcome {
        match plan {
            OrphanPlan::Keep(_) => Outcome { error: None },
            OrphanPlan::Release(_) => {
                let (key, uid) = (&observed.pod.metadata.key, observed.pod.metadata.uid);
                let released = release_pod(self.control.for_key(key, uid), key, uid).await;
                Outcome { error: released.context("cannot remove the finalizer").err() }
            }
        }
    }
}
