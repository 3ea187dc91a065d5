//! The status that follows from the observation and the outcome of the plan.
//!
//! Left out: the resourceVersion it is written under, which is `apply`'s.
//!
//! Upstream: the places of `syncCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`, that set `updateStatus`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared::api::object::Uid;
use shared::api::time::Time;

use crate::objects::{CronJobStatus, Ended, JobReference};
use crate::observe::Observed;

/// The outcome of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The Jobs that are active no more.
    pub left: BTreeSet<Uid>,
    /// The Job that runs now.
    pub started: Option<Started>,
    /// The error that ended the sync; the writes before it count.
    pub error: Option<anyhow::Error>,
}

/// A Job that was started in this sync, or in an earlier one that could not write it into the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// When it was due.
    pub due: Timestamp,
    /// Which it is.
    pub job: JobReference,
}

/// The status, if it is another one than before.
pub fn next_status(observed: &Observed, outcome: &Outcome) -> Option<CronJobStatus> {
    let before = &observed.cron_job.status;
    let mut status = before.clone();
    status.active.retain(|job| !outcome.left.contains(&job.uid));
    if let Some(Started { due, job }) = &outcome.started {
        status.active.push(job.clone());
        status.last_schedule_time = Some(Time::of(*due));
    }
    let completions =
        observed.owned().filter(|job| job.ended == Some(Ended::Complete)).filter_map(|job| job.completion);
    status.last_successful_time = status.last_successful_time.into_iter().chain(completions).max();
    Some(status).filter(|status| status != before)
}
