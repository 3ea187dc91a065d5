//! The whole `status` of a Job, so that what is written equals what was computed.

use serde::{Deserialize, Serialize};
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::object::{Uid, null_as_default};
use shared::api::time::Time;

pub mod conditions {
    pub const SUSPENDED: &str = "Suspended";
    /// It has succeeded, and all of its pods have ended.
    pub const COMPLETE: &str = "Complete";
    /// It has failed, and all of its pods have ended.
    pub const FAILED: &str = "Failed";
    pub const FAILURE_TARGET: &str = "FailureTarget";
    pub const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
}

/// Reasons of conditions, which are those of events too.
pub mod reasons {
    pub const POD_FAILURE_POLICY: &str = "PodFailurePolicy";
    /// Too many pods failed.
    pub const BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// Too many indexes failed.
    pub const MAX_FAILED_INDEXES_EXCEEDED: &str = "MaxFailedIndexesExceeded";
    pub const FAILED_INDEXES: &str = "FailedIndexes";
    pub const SUCCESS_POLICY: &str = "SuccessPolicy";
    pub const COMPLETIONS_REACHED: &str = "CompletionsReached";
    pub const JOB_SUSPENDED: &str = "JobSuspended";
    pub const JOB_RESUMED: &str = "JobResumed";
}

pub mod events {
    pub const SUSPENDED: &str = "Suspended";
    pub const RESUMED: &str = "Resumed";
    pub const COMPLETED: &str = "Completed";
    /// More pods succeeded than were asked for.
    pub const TOO_MANY_SUCCEEDED_PODS: &str = "TooManySucceededPods";
    /// `completionMode` is unknown.
    pub const UNKNOWN_COMPLETION_MODE: &str = "UnknownCompletionMode";
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<JobCondition>,
    /// When it was started, or last resumed.
    pub start_time: Option<Time>,
    pub completion_time: Option<Time>,
    pub active: i32,
    pub ready: Option<i32>,
    /// Pods that are being deleted and have not ended.
    pub terminating: Option<i32>,
    pub succeeded: i32,
    pub failed: i32,
    pub completed_indexes: Box<str>,
    /// None without `backoffLimitPerIndex`.
    pub failed_indexes: Option<Box<str>>,
    pub uncounted_terminated_pods: Option<UncountedTerminatedPods>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UncountedTerminatedPods {
    #[serde(deserialize_with = "null_as_default")]
    pub succeeded: Vec<Uid>,
    #[serde(deserialize_with = "null_as_default")]
    pub failed: Vec<Uid>,
}

/// One of `status.conditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobCondition {
    /// `Complete`, `Failed`, `Suspended`, …
    #[serde(rename = "type")]
    pub type_: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    /// When it was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Text,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

impl JobCondition {
    /// A condition set at this time.
    ///
    /// Upstream: `newCondition`, `pkg/controller/job/job_controller.go`.
    pub fn new(type_: &str, is_true: bool, reason: &str, message: &str, at: Time) -> Self {
        Self {
            type_: Text::new(type_),
            status: Text::new(if is_true { TRUE } else { FALSE }),
            last_probe_time: Some(at),
            last_transition_time: Some(at),
            reason: Text::new(reason),
            message: message.into(),
        }
    }

    pub fn is_true(&self) -> bool {
        self.status == *TRUE
    }
}

impl JobStatus {
    /// The condition of this type, if it holds.
    pub fn true_condition(&self, type_: &str) -> Option<&JobCondition> {
        self.conditions.iter().find(|condition| condition.type_ == *type_ && condition.is_true())
    }

    /// Whether the Job has ended.
    ///
    /// Upstream: `IsJobFinished`, `pkg/controller/job/utils.go`.
    pub fn is_finished(&self) -> bool {
        self.true_condition(conditions::COMPLETE).is_some() || self.true_condition(conditions::FAILED).is_some()
    }

    /// Sets a condition, and returns whether that changed anything. A new one is added only if it holds.
    ///
    /// Upstream: `ensureJobConditionStatus`, `pkg/controller/job/job_controller.go`.
    pub fn ensure_condition(&mut self, condition: JobCondition) -> bool {
        let same = |known: &&mut JobCondition| known.type_ == condition.type_;
        match self.conditions.iter_mut().find(same) {
            Some(known) => {
                let is_said = (&known.status, &known.reason, &known.message)
                    == (&condition.status, &condition.reason, &condition.message);
                if !is_said {
                    *known = condition;
                }
                !is_said
            }
            None if condition.status == *FALSE => false,
            None => {
                self.conditions.push(condition);
                true
            }
        }
    }
}
