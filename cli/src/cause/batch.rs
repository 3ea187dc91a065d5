//! Causes of Jobs.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::State;
use crate::cause::trouble::Trouble;
use crate::words::{line, many, when};

/// Why a Job is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Batch {
    /// `spec.suspend`.
    JobSuspended,
    /// `spec.managedBy` is another's name.
    ManagedBy {
        /// Whose.
        controller: String,
    },
    /// Too many pods failed.
    BackoffLimit {
        /// `backoffLimit`.
        limit: i64,
        /// So many failed.
        failed: i64,
        /// How the last one did; `""` where it is gone.
        last: String,
    },
    /// `activeDeadlineSeconds` is over.
    Deadline {
        /// So many.
        seconds: i64,
    },
    /// A rule of the pod failure policy ended it.
    PodFailurePolicy {
        /// Which pod by which rule.
        message: String,
    },
    /// Indexes failed.
    FailedIndexes {
        /// `1,3-5`.
        indexes: String,
        /// `maxFailedIndexes`, if this ended it.
        limit: Option<i64>,
    },
    /// It failed otherwise.
    JobFailed {
        /// One word.
        reason: String,
        /// For people.
        message: String,
    },
    /// Its pods fail, and it waits before it makes another one.
    PodsFail {
        /// So many failed.
        failed: i64,
        /// `backoffLimit`.
        limit: i64,
        /// When there is another one.
        next_try: Option<Timestamp>,
        /// How the last one did; `""` where it is gone.
        last: String,
    },
    /// A pod of it is not running.
    JobPod {
        /// Which one.
        pod: String,
        /// Why not.
        trouble: Trouble,
    },
    /// It goes on.
    Running {
        /// So many pods run.
        active: i64,
        /// So many have succeeded.
        succeeded: i64,
        /// So many have to; none where the first one is enough.
        completions: Option<i64>,
    },
    /// It is done.
    Complete {
        /// So many pods have succeeded.
        succeeded: i64,
        /// When it is deleted.
        expires: Option<Timestamp>,
    },
}

impl Batch {
    /// Whether anybody has to do something.
    pub fn state(&self) -> State {
        match self {
            Self::BackoffLimit { .. }
            | Self::Deadline { .. }
            | Self::PodFailurePolicy { .. }
            | Self::FailedIndexes { .. }
            | Self::JobFailed { .. }
            | Self::PodsFail { .. } => State::Stuck,
            Self::JobPod { trouble, .. } if !trouble.is_passing() => State::Stuck,
            Self::JobPod { .. } | Self::Running { .. } => State::InProgress,
            Self::JobSuspended | Self::ManagedBy { .. } | Self::Complete { .. } => State::AtRest,
        }
    }

    /// In words.
    pub fn text(&self, now: Timestamp) -> String {
        let said = |last: &str| if last.is_empty() { String::new() } else { format!("; the last one: {last}") };
        match self {
            Self::JobSuspended => "suspended (spec.suspend): it has no pods until somebody resumes it".to_owned(),
            Self::ManagedBy { controller } => {
                format!("`{controller}` manages it (spec.managedBy), job-operator does not")
            }
            Self::BackoffLimit { limit, failed, last } => {
                format!("failed: {} failed, and its backoffLimit is {limit}{}", many(*failed, "pod"), said(last))
            }
            Self::Deadline { seconds } => format!("failed: it was not done within {seconds} s (activeDeadlineSeconds)"),
            Self::PodFailurePolicy { message } => format!("failed by its pod failure policy: {}", line(message)),
            Self::FailedIndexes { indexes, limit: Some(limit) } => {
                format!("failed: more than {} failed: {indexes} (maxFailedIndexes)", indexes_of(*limit))
            }
            Self::FailedIndexes { indexes, limit: None } => format!("failed: these indexes failed: {indexes}"),
            Self::JobFailed { reason, message } => format!("failed ({reason}): {}", line(message)),
            Self::PodsFail { failed, limit, next_try, last } => {
                let next =
                    next_try.filter(|time| *time > now).map(|time| format!(", the next one {}", when(time, now)));
                let next = next.unwrap_or_default();
                format!("its pods fail: {failed} failed, it gives up after {limit}{next}{}", said(last))
            }
            Self::JobPod { pod, trouble } => format!("{pod}: {trouble}"),
            Self::Running { active, succeeded, completions } => {
                let of = completions.map(|of| format!(" of {of}")).unwrap_or_default();
                format!("running: {} active, {succeeded}{of} succeeded", many(*active, "pod"))
            }
            Self::Complete { succeeded, expires } => {
                let expires =
                    expires.map(|time| format!("; ttl-after-finished-operator deletes it {}", when(time, now)));
                format!("complete: {} succeeded{}", many(*succeeded, "pod"), expires.unwrap_or_default())
            }
        }
    }
}

/// `1 index`, `2 indexes`.
fn indexes_of(count: i64) -> String {
    if count == 1 { "1 index".to_owned() } else { format!("{count} indexes") }
}
