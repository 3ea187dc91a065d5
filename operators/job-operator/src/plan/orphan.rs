//! Whether the tracking finalizer of a pod has lost its meaning, because no Job will ever count the pod; and whether a pod
//! that no watch shows is its Job's any more.
//!
//! Left out: pods of Jobs that go on, whose finalizers go when they are counted.
//!
//! Upstream: `handleSingleOrphanPod`, `pkg/controller/job/job_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::runtime::decisions::{self, LiveRead, Reasoned};

use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::observe::OrphanPod;

/// What to do about the finalizer of one pod, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrphanPlan {
    /// It stays.
    Keep(Reason),
    /// It goes.
    Release(Reason),
    /// It goes, and the pod is its Job's no more.
    Disown(Reason),
}

/// Why a finalizer stays or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The pod has none.
    NotTracked,
    /// The pod's controller is no Job.
    OtherKind {
        /// What it is.
        kind: Text,
    },
    /// The Job goes on.
    Running {
        /// The Job's name.
        job: Text,
    },
    /// The Job is another controller's.
    ManagedBy {
        /// The Job's name.
        job: Text,
        /// The controller's.
        controller: Text,
    },
    /// The pod has no controller.
    NoController,
    /// There is no such Job.
    Gone {
        /// The name it had.
        job: Text,
    },
    /// The Job is over.
    Finished {
        /// The Job's name.
        job: Text,
    },
    /// The Job is being deleted and does not select the pod; who owns it stays for the garbage collector.
    Ending {
        /// The Job's name.
        job: Text,
    },
    /// The pod has lost the labels that the Job selects.
    NotSelected {
        /// The Job's name.
        job: Text,
    },
}

/// Decides about one pod.
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

/// What the caches leave open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unknown {
    /// Whether the Job of the pod is there: the cache has no such Job, and is behind the pod.
    Job {
        /// The Job's name.
        job: Text,
    },
}

/// Plans to read the Job where the cache may not have it yet: pods are watched apart from Jobs, so a pod may be seen before
/// its Job.
pub fn plan_live_read(observed: &OrphanPod) -> Option<LiveRead<Unknown>> {
    let OrphanPod { pod, job, is_cached: _, is_job_cached } = observed;
    let owner = pod.job().filter(|_| job.is_none() && !is_job_cached && pod.has_tracking_finalizer())?;
    Some(LiveRead { step: "read its Job", reason: Unknown::Job { job: owner.name.clone() } })
}

/// A selector that cannot be read may select it.
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
            Self::Release(reason) => write!(f, "let go ({reason})"),
            Self::Disown(reason) => write!(f, "release ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTracked => "no finalizer",
            Self::OtherKind { kind: _ } => "not a Job's",
            Self::Running { job: _ } => "its Job goes on",
            Self::ManagedBy { job: _, controller: _ } => "its Job is another controller's",
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
        write!(f, "the cache may not have {job} yet")
    }
}
