//! Whether the tracking finalizer of a pod has lost its meaning, because no Job will ever count the pod.
//!
//! Left out: pods of Jobs that go on, whose finalizers go when they are counted.
//!
//! Upstream: `handleSingleOrphanPod`, `pkg/controller/job/job_controller.go`.

use std::fmt;

use crate::observe::OrphanPod;

/// What to do about the finalizer of one pod, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanPlan {
    /// It stays.
    Keep(Keep),
    /// It goes.
    Release(Release),
}

/// Why a finalizer stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The pod has none.
    NotTracked,
    /// The pod's controller is no Job.
    OtherKind,
    /// The Job goes on.
    Running,
    /// The Job is another controller's.
    ManagedBy,
}

/// Why a finalizer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The pod has no controller.
    NoController,
    /// There is no such Job.
    Gone,
    /// The Job is over.
    Finished,
}

/// Decides about one pod.
pub fn plan_orphan(observed: &OrphanPod) -> OrphanPlan {
    let OrphanPod { pod, job, is_job_cached: _ } = observed;
    if !pod.has_tracking_finalizer() {
        return OrphanPlan::Keep(Keep::NotTracked);
    }
    if pod.metadata.controller.is_none() {
        return OrphanPlan::Release(Release::NoController);
    }
    if pod.job().is_none() {
        return OrphanPlan::Keep(Keep::OtherKind);
    }
    match job {
        None => OrphanPlan::Release(Release::Gone),
        Some(job) if job.external_controller().is_some() => OrphanPlan::Keep(Keep::ManagedBy),
        Some(job) if job.status.is_finished() => OrphanPlan::Release(Release::Finished),
        Some(_) => OrphanPlan::Keep(Keep::Running),
    }
}

impl fmt::Display for OrphanPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep(Keep::NotTracked) => "nothing (no finalizer)",
            Self::Keep(Keep::OtherKind) => "nothing (not a Job's)",
            Self::Keep(Keep::Running) => "nothing (its Job goes on)",
            Self::Keep(Keep::ManagedBy) => "nothing (its Job is another controller's)",
            Self::Release(Release::NoController) => "let go (no controller)",
            Self::Release(Release::Gone) => "let go (its Job is gone)",
            Self::Release(Release::Finished) => "let go (its Job is finished)",
        })
    }
}
