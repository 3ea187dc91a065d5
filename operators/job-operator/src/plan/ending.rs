//! Whether a Job is to end, and why: the first of several reasons counts.
//!
//! Left out: when it has ended. First its pods must be gone and counted.
//!
//! Upstream: the middle of `syncJob`, `pkg/controller/job/job_controller.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::pod::Phase;

use super::backoff::count;
use super::counts::Counts;
use super::success_policy::match_success_policy;
use crate::objects::status::{JobCondition, conditions, reasons};

/// That a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub result: JobResult,
    /// Why, as one word.
    pub reason: Text,
    /// Why, for a person.
    pub message: Box<str>,
    /// Whether an earlier sync has said so already; then it is too late for any other reason.
    pub is_announced: bool,
}

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobResult {
    /// Well.
    Succeeded,
    /// Badly.
    Failed,
}

impl JobResult {
    /// The condition that announces it.
    pub const fn announcement(self) -> &'static str {
        match self {
            Self::Succeeded => conditions::SUCCESS_CRITERIA_MET,
            Self::Failed => conditions::FAILURE_TARGET,
        }
    }

    /// The condition that says that it is over.
    pub const fn end(self) -> &'static str {
        match self {
            Self::Succeeded => conditions::COMPLETE,
            Self::Failed => conditions::FAILED,
        }
    }
}

impl Ending {
    fn new(result: JobResult, reason: &str, message: &str) -> Self {
        Self { result, reason: Text::new(reason), message: message.into(), is_announced: false }
    }

    /// As announced.
    fn announced(result: JobResult, condition: &JobCondition) -> Self {
        let JobCondition { reason, message, .. } = condition;
        Self { result, reason: reason.clone(), message: message.clone(), is_announced: true }
    }

    fn failure(reason: &str, message: &str) -> Self {
        Self::new(JobResult::Failed, reason, message)
    }

    /// Enough pods have succeeded.
    pub fn completions_reached() -> Self {
        let message = "Reached expected number of succeeded pods";
        Self::new(JobResult::Succeeded, reasons::COMPLETIONS_REACHED, message)
    }
}

/// `Failed: BackoffLimitExceeded`.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.result.end(), self.reason)
    }
}

/// Why the Job is to end, if it is.
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
    let message = failed.find_map(|pod| counts.verdict(pod).fail_job)?;
    Some(Ending::failure(reasons::POD_FAILURE_POLICY, &message))
}

/// Upstream: `exceedsBackoffLimit` and `pastBackoffLimitOnFailure`.
fn past_backoff_limit(counts: &Counts) -> Option<Ending> {
    let limit = i64::from(counts.job.spec.backoff_limit);
    let is_past = counts.failed > limit || (counts.job.spec.restarts_on_failure() && past_restarts(counts, limit));
    is_past.then(|| Ending::failure(reasons::BACKOFF_LIMIT_EXCEEDED, "Job has reached the specified backoff limit"))
}

fn past_restarts(counts: &Counts, limit: i64) -> bool {
    let restarting = counts.pods.iter().filter(|pod| matches!(pod.phase, Phase::Running | Phase::Pending));
    let restarts: i64 = restarting.map(|pod| i64::from(pod.restarts_in_all)).sum();
    // A limit of 0 lets no restart pass; any other one is reached, not passed.
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

/// Upstream: `pastActiveDeadline`.
fn past_active_deadline(counts: &Counts, now: Timestamp) -> Option<Ending> {
    let is_past = has_deadline(counts) && active_deadline(counts, now).is_none();
    is_past.then(|| Ending::failure(reasons::DEADLINE_EXCEEDED, "Job was active longer than specified deadline"))
}

fn has_deadline(counts: &Counts) -> bool {
    let spec = &counts.job.spec;
    spec.active_deadline_seconds.is_some() && counts.start_time.is_some() && !spec.suspend
}

/// How long until the Job takes too long; none if it already does, or may take for ever.
pub fn active_deadline(counts: &Counts, now: Timestamp) -> Option<Duration> {
    let seconds = counts.job.spec.active_deadline_seconds.filter(|_| has_deadline(counts))?;
    counts.start_time?.remaining(seconds, now)
}

fn past_index_limits(counts: &Counts) -> Option<Ending> {
    let indexes = counts.indexes.as_ref()?;
    let failed = indexes.failed.as_ref()?.indexes.total();
    if counts.job.spec.max_failed_indexes.is_some_and(|limit| failed > i64::from(limit)) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(Ending::failure(reasons::MAX_FAILED_INDEXES_EXCEEDED, message));
    }
    let is_any_left = failed.saturating_add(indexes.succeeded.total()) < i64::from(indexes.completions);
    (failed > 0 && !is_any_left).then(|| Ending::failure(reasons::FAILED_INDEXES, "Job has failed indexes"))
}

fn succeeded_by_policy(counts: &Counts) -> Option<Ending> {
    let indexes = counts.indexes.as_ref()?;
    let policy = counts.job.spec.success_policy.as_ref();
    let message = match_success_policy(policy, indexes.completions, &indexes.succeeded)?;
    Some(Ending::new(JobResult::Succeeded, reasons::SUCCESS_POLICY, &message))
}

/// Whether so many have succeeded that nothing is left to do, once `active` pods are left.
pub fn is_complete(counts: &Counts, active: usize) -> bool {
    let enough = match counts.job.spec.completions {
        None => counts.succeeded > 0,
        Some(completions) => counts.succeeded >= i64::from(completions),
    };
    enough && count(active) == 0
}
