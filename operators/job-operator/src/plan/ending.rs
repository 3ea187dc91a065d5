//! Whether a Job is to end, and why. The first of several reasons counts.
//!
//! Upstream: the middle of `syncJob`, `pkg/controller/job/job_controller.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::pod::Phase;
use shared::api::time::Time;

use super::counts::Counts;
use super::pod_failure_policy::Verdict;
use super::success_policy::match_success_policy;
use crate::memory::backoff::count;
use crate::objects::status::{JobCondition, conditions, reasons};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub result: JobResult,
    pub condition_reason: Text,
    pub message: Box<str>,
    pub cause: Cause,
    /// Whether an earlier sync has announced it, which excludes other reasons.
    pub is_announced: bool,
}

/// The cause of a Job's end, with the numbers that decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Cause {
    Announced,
    Completions {
        succeeded: i64,
        /// None for a work queue, which one success ends.
        completions: Option<i32>,
    },
    /// A rule of the pod failure policy, by index, fails the Job for this pod.
    PodFailurePolicy {
        rule: Option<usize>,
        pod: Box<str>,
    },
    /// More pods have failed than the limit.
    BackoffLimit {
        failed: i64,
        limit: i64,
    },
    /// Containers have restarted more often than the limit.
    Restarts {
        restarts: i64,
        limit: i64,
    },
    /// It was active longer than its deadline.
    ActiveDeadline {
        seconds: i64,
        since: Time,
    },
    /// More indexes have failed than the limit.
    MaxFailedIndexes {
        failed: i64,
        limit: i32,
    },
    FailedIndexes {
        failed: i64,
        completions: i32,
    },
    /// A rule of the success policy, by index, is met.
    SuccessPolicy {
        rule: usize,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announced => f.write_str("as announced"),
            Self::Completions { succeeded, completions: None } => write!(f, "{succeeded} succeeded"),
            Self::Completions { succeeded, completions: Some(completions) } => {
                write!(f, "{succeeded} of {completions} succeeded")
            }
            Self::PodFailurePolicy { rule: Some(rule), pod } => write!(f, "rule {rule} about pod {pod}"),
            Self::PodFailurePolicy { rule: None, pod } => write!(f, "because of pod {pod}"),
            Self::BackoffLimit { failed, limit } => write!(f, "{failed} failed, limit {limit}"),
            Self::Restarts { restarts, limit } => write!(f, "{restarts} restarts, limit {limit}"),
            Self::ActiveDeadline { seconds, since } => write!(f, "active since {since}, deadline {seconds}s"),
            Self::MaxFailedIndexes { failed, limit } => write!(f, "{failed} indexes failed, limit {limit}"),
            Self::FailedIndexes { failed, completions } => write!(f, "{failed} of {completions} indexes failed"),
            Self::SuccessPolicy { rule } => write!(f, "rule {rule} is met"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobResult {
    Succeeded,
    Failed,
}

impl JobResult {
    pub const fn announcement(self) -> &'static str {
        match self {
            Self::Succeeded => conditions::SUCCESS_CRITERIA_MET,
            Self::Failed => conditions::FAILURE_TARGET,
        }
    }

    pub const fn end(self) -> &'static str {
        match self {
            Self::Succeeded => conditions::COMPLETE,
            Self::Failed => conditions::FAILED,
        }
    }
}

impl Ending {
    fn new(result: JobResult, reason: &str, message: &str, cause: Cause) -> Self {
        let condition_reason = Text::new(reason);
        Self { result, condition_reason, message: message.into(), cause, is_announced: false }
    }

    fn announced(result: JobResult, condition: &JobCondition) -> Self {
        let JobCondition { reason, message, .. } = condition;
        let (condition_reason, message) = (reason.clone(), message.clone());
        Self { result, condition_reason, message, cause: Cause::Announced, is_announced: true }
    }

    fn failure(reason: &str, message: &str, cause: Cause) -> Self {
        Self::new(JobResult::Failed, reason, message, cause)
    }

    pub fn completions_reached(counts: &Counts) -> Self {
        let message = "Reached expected number of succeeded pods";
        let cause = Cause::Completions { succeeded: counts.succeeded, completions: counts.job.spec.completions };
        Self::new(JobResult::Succeeded, reasons::COMPLETIONS_REACHED, message, cause)
    }
}

/// `Failed: BackoffLimitExceeded`.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.result.end(), self.condition_reason)
    }
}

/// The first reason for an end.
pub fn next_ending(counts: &Counts, now: Timestamp) -> Option<Ending> {
    let status = &counts.job.status;
    let announced = |result: JobResult| {
        status.true_condition(result.announcement()).map(|condition| Ending::announced(result, condition))
    };
    announced(JobResult::Succeeded)
        .or_else(|| announced(JobResult::Failed))
        .or_else(|| failed_by_policy(counts))
        .or_else(|| past_backoff_limit(counts))
        .or_else(|| past_active_deadline(counts, now))
        .or_else(|| past_index_limits(counts))
        .or_else(|| succeeded_by_policy(counts))
}

/// Upstream: `getFailJobMessage`.
fn failed_by_policy(counts: &Counts) -> Option<Ending> {
    let mut failed = counts.pods.iter().filter(|pod| counts.is_failed(pod));
    let (message, cause) = failed.find_map(|pod| {
        let Verdict { action: _, rule, fail_job } = counts.verdict(pod);
        Some((fail_job?, Cause::PodFailurePolicy { rule, pod: pod.metadata.name().into() }))
    })?;
    Some(Ending::failure(reasons::POD_FAILURE_POLICY, &message, cause))
}

/// Upstream: `exceedsBackoffLimit` and `pastBackoffLimitOnFailure`.
fn past_backoff_limit(counts: &Counts) -> Option<Ending> {
    let limit = i64::from(counts.job.spec.backoff_limit);
    let cause = if counts.failed > limit {
        Cause::BackoffLimit { failed: counts.failed, limit }
    } else {
        past_restarts(counts, limit).filter(|_| counts.job.spec.restarts_on_failure())?
    };
    let message = "Job has reached the specified backoff limit";
    Some(Ending::failure(reasons::BACKOFF_LIMIT_EXCEEDED, message, cause))
}

fn past_restarts(counts: &Counts, limit: i64) -> Option<Cause> {
    let restarting = counts.pods.iter().filter(|pod| matches!(pod.phase, Phase::Running | Phase::Pending));
    let restarts: i64 = restarting.map(|pod| i64::from(pod.restarts_in_all)).sum();
    // A limit of 0 allows no restart; any other limit is exceeded when it is reached.
    let is_past = if limit == 0 { restarts > 0 } else { restarts >= limit };
    is_past.then_some(Cause::Restarts { restarts, limit })
}

/// Upstream: `pastActiveDeadline`.
fn past_active_deadline(counts: &Counts, now: Timestamp) -> Option<Ending> {
    let (seconds, since) = deadline(counts)?;
    let cause = Cause::ActiveDeadline { seconds, since };
    let message = "Job was active longer than specified deadline";
    since.remaining(seconds, now).is_none().then(|| Ending::failure(reasons::DEADLINE_EXCEEDED, message, cause))
}

/// The active deadline in seconds, and the start.
fn deadline(counts: &Counts) -> Option<(i64, Time)> {
    let spec = &counts.job.spec;
    Some((spec.active_deadline_seconds?, counts.start_time?)).filter(|_| !spec.suspend)
}

/// How long until the deadline; none if it has passed, or if there is none.
pub fn active_deadline(counts: &Counts, now: Timestamp) -> Option<Duration> {
    let (seconds, since) = deadline(counts)?;
    since.remaining(seconds, now)
}

fn past_index_limits(counts: &Counts) -> Option<Ending> {
    let indexes = counts.indexes.as_ref()?;
    let failed = indexes.failed.as_ref()?.indexes.total();
    if let Some(limit) = counts.job.spec.max_failed_indexes.filter(|limit| failed > i64::from(*limit)) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        let cause = Cause::MaxFailedIndexes { failed, limit };
        return Some(Ending::failure(reasons::MAX_FAILED_INDEXES_EXCEEDED, message, cause));
    }
    let is_any_left = failed.saturating_add(indexes.succeeded.total()) < i64::from(indexes.completions);
    let cause = Cause::FailedIndexes { failed, completions: indexes.completions };
    (failed > 0 && !is_any_left).then(|| Ending::failure(reasons::FAILED_INDEXES, "Job has failed indexes", cause))
}

fn succeeded_by_policy(counts: &Counts) -> Option<Ending> {
    let indexes = counts.indexes.as_ref()?;
    let policy = counts.job.spec.success_policy.as_ref();
    let rule = match_success_policy(policy, indexes.completions, &indexes.succeeded)?;
    let message = format!("Matched rules at index {rule}");
    Some(Ending::new(JobResult::Succeeded, reasons::SUCCESS_POLICY, &message, Cause::SuccessPolicy { rule }))
}

/// Whether the Job is complete, with this number of active pods.
pub fn is_complete(counts: &Counts, active: usize) -> bool {
    let enough = match counts.job.spec.completions {
        None => counts.succeeded > 0,
        Some(completions) => counts.succeeded >= i64::from(completions),
    };
    enough && count(active) == 0
}
