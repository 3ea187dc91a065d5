//! The views of a CronJob and a Job: the fields this operator reads, and the exact texts it writes.
//!
//! The job template is kept as the JSON it came in, so that a field newer than this build reaches the Job. Left out:
//! all of a Job but how it ended.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::api::condition::{Condition, is_true};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, Uid, null_as_default};
use shared::api::resource::{JOBS, Resource};
use shared::api::time::Time;

/// `batch/v1` `CronJob`.
pub const CRON_JOBS: Resource = Resource::namespaced("batch", "v1", "CronJob", "cronjobs");

/// On a Job: when it was due, in its CronJob's time zone.
pub const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Reasons of events.
pub mod reasons {
    /// An active Job is gone, and this operator has not deleted it.
    pub const MISSING_JOB: &str = "MissingJob";
    /// A Job of ours that the status did not list.
    pub const UNEXPECTED_JOB: &str = "UnexpectedJob";
    /// A Job has ended.
    pub const SAW_COMPLETED_JOB: &str = "SawCompletedJob";
    /// Concurrency is forbidden, and a Job runs.
    pub const JOB_ALREADY_ACTIVE: &str = "JobAlreadyActive";
    /// More than a hundred runs were missed.
    pub const TOO_MANY_MISSED_TIMES: &str = "TooManyMissedTimes";
    /// The schedule names a time zone itself.
    pub const UNSUPPORTED_SCHEDULE: &str = "UnsupportedSchedule";
    /// A schedule that was just set cannot be read. Upstream has a second spelling for it.
    pub const UNPARSEABLE_NEW_SCHEDULE: &str = "UnParseableCronJobSchedule";
    /// The schedule cannot be read.
    pub const UNPARSEABLE_SCHEDULE: &str = "UnparseableSchedule";
    /// The schedule can be read, but is never due.
    pub const INVALID_SCHEDULE: &str = "InvalidSchedule";
    /// There is no such time zone.
    pub const UNKNOWN_TIME_ZONE: &str = "UnknownTimeZone";
    /// A Job was created.
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
    /// A Job could not be created.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// A Job was deleted.
    pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";
    /// A Job could not be deleted.
    pub const FAILED_DELETE: &str = "FailedDelete";
}

/// A CronJob.
#[derive(Debug, Deserialize)]
pub struct CronJob {
    /// Its metadata.
    pub metadata: Meta,
    /// When Jobs start, and how they are made.
    pub spec: CronJobSpec,
    /// The runs so far, as last written.
    #[serde(default)]
    pub status: CronJobStatus,
}

shared::view!(CronJob, CRON_JOBS);

impl CronJob {
    /// Whether its status lists a Job of this uid as running.
    pub fn has_active(&self, uid: Uid) -> bool {
        self.status.active.iter().any(|active| active.uid == uid)
    }
}

/// `spec` of a CronJob.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When, as cron has it.
    pub schedule: Box<str>,
    /// Where the clocks are that the schedule follows.
    #[serde(default)]
    pub time_zone: Option<Box<str>>,
    /// How late a run may start.
    #[serde(default)]
    pub starting_deadline_seconds: Option<i64>,
    /// How a run that is due treats one that is not done.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether nothing is started for now.
    #[serde(default)]
    pub suspend: Option<bool>,
    /// How many Jobs that succeeded stay.
    #[serde(default)]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many Jobs that failed stay.
    #[serde(default)]
    pub failed_jobs_history_limit: Option<i32>,
    /// How its Jobs are made. Read only when one is.
    #[serde(default)]
    pub job_template: Box<RawValue>,
}

/// How a run that is due treats one that is not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ConcurrencyPolicy {
    /// It waits for the end of the other, and is then late.
    Forbid,
    /// The other is deleted.
    Replace,
    /// It starts beside the other. A policy this build does not know is taken for this one, as upstream does.
    #[default]
    #[serde(other)]
    Allow,
}

/// `status` of a CronJob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// The Jobs that run.
    #[serde(deserialize_with = "null_as_default")]
    pub active: Vec<JobReference>,
    /// When the last one was due.
    pub last_schedule_time: Option<Time>,
    /// When the last Job that succeeded was done.
    pub last_successful_time: Option<Time>,
}

/// `v1.ObjectReference` of a Job.
///
/// Upstream: `GetReference`, `staging/src/k8s.io/client-go/tools/reference/ref.go`, sets these fields and no others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobReference {
    /// `Job`.
    #[serde(default)]
    pub kind: Text,
    /// Its namespace.
    #[serde(default)]
    pub namespace: Text,
    /// Its name.
    #[serde(default)]
    pub name: Box<str>,
    /// Its identity.
    #[serde(default)]
    pub uid: Uid,
    /// `batch/v1`.
    #[serde(default)]
    pub api_version: Text,
    /// As it was when it was noted.
    #[serde(default)]
    pub resource_version: ResourceVersion,
}

impl JobReference {
    /// A reference to this Job.
    pub fn new(job: &Meta) -> Self {
        Self {
            kind: Text::new(&JOBS.kind),
            namespace: Text::new(job.namespace()),
            name: job.name().into(),
            uid: job.uid,
            api_version: Text::new(&JOBS.api_version()),
            resource_version: job.resource_version,
        }
    }

    /// Its namespace and name.
    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

/// A Job: its owner, and how it ended.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawJob")]
pub struct Job {
    /// Its metadata.
    pub metadata: Meta,
    /// How it ended, if it did.
    pub ended: Option<Ended>,
    /// When it started.
    pub start: Option<Time>,
    /// When it was complete.
    pub completion: Option<Time>,
}

shared::view!(Job, JOBS);

/// How a Job ended. Prints as the condition that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Ended {
    /// Well.
    Complete,
    /// It failed.
    Failed,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        })
    }
}

#[derive(Deserialize)]
struct RawJob {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawJobStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawJobStatus {
    conditions: Option<Vec<Condition>>,
    start_time: Option<Time>,
    completion_time: Option<Time>,
}

/// Upstream: `getFinishedStatus`, `pkg/controller/cronjob/utils.go`. The apiserver lets no Job have both conditions.
impl From<RawJob> for Job {
    fn from(RawJob { metadata, status }: RawJob) -> Self {
        let conditions = status.conditions.unwrap_or_default();
        let has = |type_| is_true(&conditions, type_);
        let ended = match (has("Complete"), has("Failed")) {
            (true, _) => Some(Ended::Complete),
            (false, true) => Some(Ended::Failed),
            (false, false) => None,
        };
        Self { metadata, ended, start: status.start_time, completion: status.completion_time }
    }
}
