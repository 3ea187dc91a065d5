//! The view of a Job: whether it has ended, when, and its time to live.

use serde::Deserialize;
use shared::api::condition::{Condition, TRUE};
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::JOBS;
use shared::api::time::Time;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawJob")]
pub struct Job {
    pub metadata: Meta,
    /// How many seconds it may stay after its end.
    pub ttl_seconds: Option<i32>,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    NotYet,
    At(Time),
    AtUnknownTime,
}

shared::view!(Job, JOBS);

#[derive(Deserialize)]
struct RawJob {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    ttl_seconds_after_finished: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    conditions: Option<Vec<Condition>>,
}

/// Upstream: `jobFinishTime`, `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`.
impl From<RawJob> for Job {
    fn from(RawJob { metadata, spec, status }: RawJob) -> Self {
        let conditions = status.conditions.unwrap_or_default();
        let ended = conditions.iter().find(|condition| {
            (condition.type_ == "Complete" || condition.type_ == "Failed") && condition.status == TRUE
        });
        let end = match ended {
            None => End::NotYet,
            Some(Condition { last_transition_time: Some(time), .. }) => End::At(*time),
            Some(Condition { last_transition_time: None, .. }) => End::AtUnknownTime,
        };
        Self { metadata, ttl_seconds: spec.ttl_seconds_after_finished, end }
    }
}
