//! Whether a pod keeps its tracking finalizer, and a pod that is not watched its Job.
//!
//! Upstream: `handleSingleOrphanPod`, `pkg/controller/job/job_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::observe::OrphanPod;

/// The decision about the finalizer of one pod, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrphanPlan {
    Keep(Reason),
    Release(Reason),
    Disown(Reason),
}

/// Why a finalizer is kept or removed; `job` is the Job's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    NotTracked,
    /// The pod's controller is not a Job.
    OtherKind {
        kind: Text,
    },
    /// The Job has not ended.
    Running {
        job: Text,
    },
    ManagedBy {
        job: Text,
        controller: Text,
    },
    NoController,
    /// The Job does not exist.
    Gone {
        job: Text,
    },
    Finished {
        job: Text,
    },
    /// The Job is being deleted and does not select the pod. The garbage collector needs the owner.
    Ending {
        job: Text,
    },
    /// The pod has lost the labels that the Job selects.
    NotSelected {
        job: Text,
    },
}

pub fn plan_orphan(observed: &OrphanPod) -> OrphanPlan {
    let OrphanPod { pod, job, is_cached, is_job_cached: _ } = observed;
    if !pod.has_tracking_finalizer() {
        return OrphanPlan::Keep(Reason::NotTracked);
    }
    let Some(controller) = &pod.metadata.controller else { return OrphanPlan::Release(Reason::NoController) };
    if pod.job().is_none() {
        return OrphanPlan::Keep(Reason::OtherKind { kind: controller.kind.clone() });
    }
    let name = controller.name.clone();
    let Some(state) = job else { return OrphanPlan::Release(Reason::Gone { job: name }) };
    if let Some(controller) = state.external_controller() {
        return OrphanPlan::Keep(Reason::ManagedBy { job: name, controller: Text::new(controller) });
    }
    if state.status.is_finished() {
        return OrphanPlan::Release(Reason::Finished { job: name });
    }
    if *is_cached || selects(state, pod) {
        return OrphanPlan::Keep(Reason::Running { job: name });
    }
    if state.metadata.is_being_deleted() {
        return OrphanPlan::Release(Reason::Ending { job: name });
    }
    OrphanPlan::Disown(Reason::NotSelected { job: name })
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unknown {
    /// Whether the Job exists: the cache does not have it, and is older than the pod.
    Job { job: Text },
}

/// Plans to read the Job if it may not be cached yet: the watch of pods can be ahead of that of Jobs.
pub fn plan_live_read(observed: &OrphanPod) -> Option<LiveRead<Unknown>> {
    let OrphanPod { pod, job, is_cached: _, is_job_cached } = observed;
    let owner = pod.job().filter(|_| job.is_none() && !is_job_cached && pod.has_tracking_finalizer())?;
    Some(LiveRead { step: "read its Job", reason: Unknown::Job { job: owner.name.clone() } })
}

/// An invalid selector may select any pod.
fn selects(job: &Job, pod: &Pod) -> bool {
    job.spec.selector.as_ref().map_or(true, |selector| selector.matches(&pod.metadata.labels))
}

impl decisions::Reason for Reason {}

impl Reasoned for OrphanPlan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) | Self::Release(reason) | Self::Disown(reason) => reason,
        }
    }
}

impl fmt::Display for OrphanPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(reason) => write!(f, "nothing ({reason})"),
            Self::Release(reason) => write!(f, "remove finalizer ({reason})"),
            Self::Disown(reason) => write!(f, "disown ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTracked => "no finalizer",
            Self::OtherKind { kind: _ } => "not owned by a Job",
            Self::Running { job: _ } => "its Job is running",
            Self::ManagedBy { job: _, controller: _ } => "another controller manages its Job",
            Self::NoController => "no controller",
            Self::Gone { job: _ } => "its Job is gone",
            Self::Finished { job: _ } => "its Job is finished",
            Self::Ending { job: _ } => "its Job is being deleted and does not select it",
            Self::NotSelected { job: _ } => "its Job does not select it",
        })
    }
}

impl decisions::Reason for Unknown {}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Job { job } = self;
        write!(f, "{job} may not be cached yet")
    }
}
