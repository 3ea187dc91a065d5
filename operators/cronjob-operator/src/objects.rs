//! The views of a CronJob and a Job, and the reasons of events.
//!
//! The job template stays JSON, so that fields unknown to this version reach the Job.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::api::condition::{Condition, is_true};
use shared::api::intern::Text;
use shared::api::kept::Kept;
use shared::api::object::{Key, Meta, ResourceVersion, Uid, null_as_default};
use shared::api::resource::{JOBS, Resource};
use shared::api::time::Time;
use shared::controllers::live_spec::Abridged;

pub const CRON_JOBS: Resource = Resource::namespaced("batch", "v1", "CronJob", "cronjobs");

/// On a Job: when it was due, in its CronJob's time zone.
pub const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub mod events {
    /// An active Job is gone, and this operator has not deleted it.
    pub const MISSING_JOB: &str = "MissingJob";
    /// A Job of ours that the status did not list.
    pub const UNEXPECTED_JOB: &str = "UnexpectedJob";
    pub const SAW_COMPLETED_JOB: &str = "SawCompletedJob";
    pub const JOB_ALREADY_ACTIVE: &str = "JobAlreadyActive";
    /// More than a hundred runs were missed.
    pub const TOO_MANY_MISSED_TIMES: &str = "TooManyMissedTimes";
    pub const UNSUPPORTED_SCHEDULE: &str = "UnsupportedSchedule";
    /// A schedule that was just set cannot be read. Upstream has a second spelling for it.
    pub const UNPARSEABLE_NEW_SCHEDULE: &str = "UnParseableCronJobSchedule";
    pub const UNPARSEABLE_SCHEDULE: &str = "UnparseableSchedule";
    /// The schedule can be read, but is never due.
    pub const INVALID_SCHEDULE: &str = "InvalidSchedule";
    pub const UNKNOWN_TIME_ZONE: &str = "UnknownTimeZone";
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
    /// A Job could not be created.
    pub const FAILED_CREATE: &str = "FailedCreate";
    pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";
    /// A Job could not be deleted.
    pub const FAILED_DELETE: &str = "FailedDelete";
}

#[derive(Clone, Debug, Deserialize)]
pub struct CronJob {
    pub metadata: Meta,
    pub spec: CronJobSpec,
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

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    pub schedule: Box<str>,
    #[serde(default)]
    pub time_zone: Option<Box<str>>,
    #[serde(default)]
    pub starting_deadline_seconds: Option<i64>,
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    #[serde(default)]
    pub suspend: Option<bool>,
    #[serde(default)]
    pub successful_jobs_history_limit: Option<i32>,
    #[serde(default)]
    pub failed_jobs_history_limit: Option<i32>,
    /// Parsed only when a Job is created.
    #[serde(default)]
    pub job_template: Kept,
}

impl Abridged for CronJob {
    fn left_out(&self) -> usize {
        self.spec.job_template.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            #[serde(default)]
            job_template: Box<RawValue>,
        }
        let Spec { job_template } = serde_json::from_str(spec.get())?;
        let spec = CronJobSpec { job_template: Kept::Whole(job_template), ..self.spec.clone() };
        Ok(Self { spec, ..self.clone() })
    }
}

/// What to do with a due run while another one is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ConcurrencyPolicy {
    Forbid,
    Replace,
    /// Start it beside the other; as upstream, also for an unknown policy.
    #[default]
    #[serde(other)]
    Allow,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub active: Vec<JobReference>,
    /// When the last started run was due.
    pub last_schedule_time: Option<Time>,
    /// When the last successful Job completed.
    pub last_successful_time: Option<Time>,
}

/// `v1.ObjectReference` of a Job.
///
/// Upstream: `GetReference`, `staging/src/k8s.io/client-go/tools/reference/ref.go`, sets these fields and no others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobReference {
    #[serde(default)]
    pub kind: Text,
    #[serde(default)]
    pub namespace: Text,
    #[serde(default)]
    pub name: Box<str>,
    #[serde(default)]
    pub uid: Uid,
    #[serde(default)]
    pub api_version: Text,
    #[serde(default)]
    pub resource_version: ResourceVersion,
}

impl JobReference {
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

    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

/// A Job: its owner, and how it ended.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawJob")]
pub struct Job {
    pub metadata: Meta,
    pub ended: Option<Ended>,
    pub start: Option<Time>,
    pub completion: Option<Time>,
}

shared::view!(Job, JOBS);

/// How a Job ended, by its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Ended {
    Complete,
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
