//! The status of a Job after its finalizers were removed: the counters, and the end of the Job.
//!
//! Upstream: the end of `trackJobStatusAndRemoveFinalizers`, `pkg/controller/job/job_controller.go`.

use jiff::Timestamp;
use shared::api::time::Time;

use crate::apply::Tracked;
use crate::objects::status::{JobCondition, JobStatus};
use crate::plan::ending::{Ending, JobResult};
use crate::plan::tracking::count_released;

/// The last status of a sync.
#[derive(Clone, Debug, PartialEq)]
pub struct LastStatus {
    pub status: JobStatus,
    /// How the Job has ended, if it has.
    pub ended: Option<Ending>,
}

/// The last status; none if it equals the first, or if the first was not written.
pub fn next_status(tracked: &Tracked, now: Timestamp) -> Option<LastStatus> {
    let Tracked { version: _, status: before, tracked, end, failure, error } = tracked;
    if error.is_some() {
        return None;
    }
    let mut status = before.clone();
    // The successes of an Indexed Job are already counted by index.
    count_released(&mut status, tracked);
    let ended = end.as_ref().filter(|end| !end.is_put_off && failure.is_none() && is_settled(&status));
    if let Some(end) = ended {
        let Ending { result, condition_reason, message, cause: _, is_announced: _ } = &end.ending;
        status.ensure_condition(JobCondition::new(result.end(), true, condition_reason, message, Time::of(now)));
        if *result == JobResult::Succeeded {
            status.completion_time = Some(end.at);
        }
    }
    let ended = ended.map(|end| end.ending.clone());
    (status != *before).then_some(LastStatus { status, ended })
}

fn is_settled(status: &JobStatus) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    uncounted.is_none_or(|pods| pods.succeeded.is_empty() && pods.failed.is_empty()) && status.terminating == Some(0)
}
