//! The status of a CronJob after a sync.
//!
//! Upstream: the places of `syncCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`, that set `updateStatus`.

use shared::api::time::Time;

use crate::apply::{Outcome, Started};
use crate::objects::{CronJobStatus, Ended};
use crate::observe::Observed;

/// The status, if it changes.
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
