//! Why pods of a Job are created, deleted or left.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::selector::InvalidSelector;
use shared::working::decisions;
use shared::working::expectations::Outstanding;

use super::counts::Counts;
use super::ending::{Cause, Ending};
use super::new_pod::InvalidTemplate;
use crate::objects::Job;
use crate::objects::status::conditions;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    Finished {
        /// `Complete` or `Failed`.
        condition: &'static str,
        reason: Text,
    },
    ManagedBy {
        controller: Box<str>,
    },
    UnknownCompletionMode {
        mode: Text,
    },
    InvalidSelector {
        error: InvalidSelector,
    },
    /// It ends, and no pod may stay active.
    Ends {
        /// `Complete` or `Failed`.
        condition: &'static str,
        reason: Text,
        cause: Cause,
        active: usize,
        terminating: usize,
    },
    Suspended {
        active: usize,
    },
    /// Its parallelism and completions ask for this number of active pods.
    Parallelism(Numbers),
    /// Pods are missing, but by its `podReplacementPolicy` or `podFailurePolicy` a pod is replaced only after it has
    /// ended.
    WaitingForTerminating(Numbers),
    /// Pods are missing, but every index is done or taken.
    NoIndexLeft(Numbers),
    InvalidTemplate {
        error: InvalidTemplate,
    },
    Backoff(Backoff),
    /// The cache has not seen the last writes.
    Waiting(Outstanding),
    /// The Job is being deleted. The garbage collector deletes its pods.
    BeingDeleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    pub active: usize,
    pub wanted: usize,
    /// Pods that are being deleted and have not ended.
    pub terminating: usize,
    pub succeeded: i64,
    pub failed: i64,
    /// None for a work queue.
    pub completions: Option<i32>,
}

/// The back-off after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    pub failures: i64,
    /// The first index to be retried, if each has its own back-off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<i32>,
    pub wait_seconds: u64,
    pub next: Timestamp,
}

impl Numbers {
    pub(super) fn of(counts: &Counts, wanted: usize) -> Self {
        Self {
            active: counts.active().count(),
            wanted,
            terminating: counts.terminating().count(),
            succeeded: counts.succeeded,
            failed: counts.failed,
            completions: counts.job.spec.completions,
        }
    }
}

impl Reason {
    /// The end of the Job, if it has ended.
    pub(super) fn finished(job: &Job) -> Option<Self> {
        [conditions::COMPLETE, conditions::FAILED].into_iter().find_map(|condition| {
            let said = job.status.true_condition(condition)?;
            Some(Self::Finished { condition, reason: said.reason.clone() })
        })
    }

    pub(super) fn ends(ending: &Ending, counts: &Counts) -> Self {
        Self::Ends {
            condition: ending.result.end(),
            reason: ending.condition_reason.clone(),
            cause: ending.cause.clone(),
            active: counts.active().count(),
            terminating: counts.terminating().count(),
        }
    }
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { condition: _, reason: _ } => f.write_str("finished"),
            Self::ManagedBy { controller } => write!(f, "managed by {controller}"),
            Self::UnknownCompletionMode { mode: _ } => f.write_str("unknown completion mode"),
            Self::InvalidSelector { error } => write!(f, "invalid selector: {error}"),
            Self::Ends { condition, reason, cause, active: _, terminating: _ } => {
                write!(f, "{condition}: {reason}, {cause}")
            }
            Self::Suspended { active: _ } => f.write_str("suspended"),
            Self::Parallelism(numbers) => write!(f, "{numbers}"),
            Self::WaitingForTerminating(numbers) => {
                write!(f, "{numbers}, waiting for {} terminating", numbers.terminating)
            }
            Self::NoIndexLeft(numbers) => write!(f, "{numbers}, no index left"),
            Self::InvalidTemplate { error } => write!(f, "{error}"),
            Self::Backoff(Backoff { failures: _, index: _, wait_seconds, next: _ }) => {
                write!(f, "waiting {wait_seconds}s after failures")
            }
            Self::Waiting(outstanding) => write!(f, "waiting to see {outstanding}"),
            Self::BeingDeleted => f.write_str("being deleted"),
        }
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { active, wanted, terminating: _, succeeded: _, failed: _, completions: _ } = self;
        write!(f, "{active} of {wanted} active")
    }
}
