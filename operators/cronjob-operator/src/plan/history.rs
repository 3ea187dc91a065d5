//! Finished Jobs beyond the history limits.
//!
//! Upstream: `cleanupFinishedJobs`, `pkg/controller/cronjob/cronjob_controllerv2.go`, which also deletes the Jobs of
//! another CronJob of the same name.

use std::sync::Arc;

use super::Deletion;
use crate::objects::{Ended, Job};
use crate::observe::Observed;

/// The oldest Jobs beyond each limit. Jobs that are being deleted count, but are not deleted again.
pub(super) fn surplus(observed: &Observed) -> Vec<Deletion> {
    let spec = &observed.cron_job.spec;
    [(Ended::Complete, spec.successful_jobs_history_limit), (Ended::Failed, spec.failed_jobs_history_limit)]
        .into_iter()
        .filter_map(|(ended, limit)| Some((ended, usize::try_from(limit?.max(0)).ok()?)))
        .flat_map(|(ended, limit)| oldest_beyond(observed, ended, limit))
        .filter(|job| !job.metadata.is_being_deleted())
        .map(|job| Deletion::of(&job))
        .collect()
}

/// Upstream: `removeOldestJobs`, and `byJobStartTime`, `utils.go`.
fn oldest_beyond(observed: &Observed, ended: Ended, limit: usize) -> Vec<Arc<Job>> {
    let mut jobs: Vec<Arc<Job>> = observed.owned().filter(|job| job.ended == Some(ended)).cloned().collect();
    jobs.sort_by(|a, b| {
        let (a_rank, b_rank) = ((a.start.is_none(), a.start), (b.start.is_none(), b.start));
        a_rank.cmp(&b_rank).then_with(|| a.metadata.name().cmp(b.metadata.name()))
    });
    jobs.truncate(jobs.len().saturating_sub(limit));
    jobs
}
