//! The status of a Job once finalizers are gone: which pods were counted, and whether the Job is over.
//!
//! Left out: the status before that, which is [`crate::plan::tracking`]'s.
//!
//! Upstream: the end of `trackJobStatusAndRemoveFinalizers`, `pkg/controller/job/job_controller.go`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared::api::object::Uid;
use shared::api::time::Time;

use crate::objects::status::{JobCondition, JobStatus};
use crate::plan::ending::{Ending, JobResult};
use crate::plan::tracking::{Tracking, count_released};

/// The last writes of a sync.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// The whole status.
    pub status: JobStatus,
    /// Whether it differs from the status written before the finalizers went.
    pub is_news: bool,
    /// How the Job has ended, if it has.
    pub ended: Option<Ending>,
}

/// The status after finalizers were removed from all pods but `kept`, where that failed.
pub fn next_status(tracking: &Tracking, kept: &BTreeSet<Uid>, now: Timestamp) -> Finish {
    let mut status = tracking.status.clone();
    let released: BTreeSet<Uid> =
        tracking.release.iter().map(|pod| pod.uid).filter(|uid| !kept.contains(uid)).collect();
    let tracked: BTreeSet<Uid> = tracking.tracked.difference(&released).copied().collect();
    // Of an Indexed Job only failures are named by uid; its successes are counted by index already.
    count_released(&mut status, &tracked);
    let ended = tracking.end.as_ref().filter(|end| !end.is_put_off && kept.is_empty() && is_settled(&status));
    if let Some(end) = ended {
        let Ending { result, reason, message, is_announced: _ } = &end.ending;
        status.ensure_condition(JobCondition::new(result.end(), true, reason, message, Time::of(now)));
        if *result == JobResult::Succeeded {
            status.completion_time = Some(end.at);
        }
    }
    Finish { is_news: status != tracking.status, ended: ended.map(|end| end.ending.clone()), status }
}

/// Whether nothing is left to count, and nothing still runs.
fn is_settled(status: &JobStatus) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    uncounted.is_none_or(|pods| pods.succeeded.is_empty() && pods.failed.is_empty()) && status.terminating == Some(0)
}
