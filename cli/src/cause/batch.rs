//! Causes of Jobs.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::state::State;
use crate::cause::trouble::Trouble;
use crate::words::{line, many, when};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Batch {
    JobSuspended,
    /// `spec.managedBy` names another controller.
    ManagedBy {
        controller: String,
    },
    /// Too many pods failed.
    BackoffLimit {
        limit: i64,
        failed: i64,
        last: String,
    },
    /// `activeDeadlineSeconds` is over.
    Deadline {
        seconds: i64,
    },
    PodFailurePolicy {
        message: String,
    },
    FailedIndexes {
        indexes: String,
        limit: Option<i64>,
    },
    JobFailed {
        reason: String,
        message: String,
    },
    PodsFail {
        failed: i64,
        limit: i64,
        next_try: Option<Timestamp>,
        last: String,
    },
    /// A pod of the Job is not running.
    JobPod {
        pod: String,
        trouble: Trouble,
    },
    Running {
        active: i64,
        succeeded: i64,
        completions: Option<i64>,
    },
    Complete {
        succeeded: i64,
        expires: Option<Timestamp>,
    },
}

impl Batch {
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

    pub fn text(&self, now: Timestamp) -> String {
        let said = |last: &str| if last.is_empty() { String::new() } else { format!("; last failure: {last}") };
        match self {
            Self::JobSuspended => "suspended (spec.suspend): no pods run until it is resumed".to_owned(),
            Self::ManagedBy { controller } => {
                format!("managed by `{controller}` (spec.managedBy), not by job-operator")
            }
            Self::BackoffLimit { limit, failed, last } => {
                format!("failed: {} failed (backoffLimit {limit}){}", many(*failed, "pod"), said(last))
            }
            Self::Deadline { seconds } => format!("failed: not finished within {seconds} s (activeDeadlineSeconds)"),
            Self::PodFailurePolicy { message } => format!("failed by its pod failure policy: {}", line(message)),
            Self::FailedIndexes { indexes, limit: Some(limit) } => {
                format!("failed: more than {} failed: {indexes} (maxFailedIndexes)", indexes_of(*limit))
            }
            Self::FailedIndexes { indexes, limit: None } => format!("failed: indexes {indexes} failed"),
            Self::JobFailed { reason, message } => format!("failed ({reason}): {}", line(message)),
            Self::PodsFail { failed, limit, next_try, last } => {
                let next = next_try.filter(|time| *time > now).map(|time| format!(", next retry {}", when(time, now)));
                let next = next.unwrap_or_default();
                format!("pods keep failing: {failed} failed, backoffLimit {limit}{next}{}", said(last))
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
