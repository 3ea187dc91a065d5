//! The view of a Pod: its end, its index, its finalizer.
//!
//! Fields that only failed pods need are kept for those alone.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{ControllerRef, Meta};
use shared::api::pod::container::{ContainerStatus, InitContainer, sidecars};
use shared::api::pod::ranking::Standing;
use shared::api::pod::{DeletionCost, Phase, PodView, Readiness, Restarts};
use shared::api::resource::{JOBS, PODS};
use shared::api::time::Time;

use super::{JOB_COMPLETION_INDEX, JOB_INDEX_FAILURE_COUNT, JOB_INDEX_IGNORED_FAILURE_COUNT, JOB_TRACKING_FINALIZER};

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta<JobAnnotations>,
    pub is_assigned: bool,
    pub phase: Phase,
    pub readiness: Readiness,
    pub restarts: Restarts,
    pub restarts_in_all: i32,
    /// When it ended, if known; meaningless before its end.
    pub finish: Option<Time>,
    /// The fields that a pod failure policy reads; `None` if they are empty. A running pod counts as failed if its Job
    /// fails.
    pub failure: Option<Box<Failure>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Containers that ended with another exit code than 0, init containers last.
    pub exits: Box<[Exit]>,
    pub conditions: Box<[(Text, Text)]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    pub container: Text,
    pub code: i32,
}

/// The annotations of a pod that a Job reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobAnnotations {
    /// None if the annotation is missing or invalid.
    pub index: Option<i32>,
    pub failures: i32,
    pub ignored_failures: i32,
}

/// The conditions that a kubelet sets on every pod. They are not kept while a pod runs, because no policy is about
/// them.
const USUAL_CONDITIONS: [&str; 5] =
    ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];

impl Pod {
    /// Whether it is uncounted.
    ///
    /// Upstream: `hasJobTrackingFinalizer`, `pkg/controller/job/job_controller.go`.
    pub fn has_tracking_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().any(|finalizer| *finalizer == *JOB_TRACKING_FINALIZER)
    }

    pub fn job(&self) -> Option<&ControllerRef> {
        let is_job = |owner: &&ControllerRef| owner.kind == *JOBS.kind && owner.api_version == *JOBS.api_version();
        self.metadata.controller.as_deref().filter(is_job)
    }

    /// Upstream: `getCompletionIndex`, `pkg/controller/job/indexed_job_utils.go`.
    pub const fn index(&self) -> Option<i32> {
        self.metadata.annotations.index
    }

    /// Whether both states of one pod lead to the same decisions.
    pub fn is_alike(&self, other: &Self) -> bool {
        let Self { metadata, is_assigned, phase, readiness, restarts, restarts_in_all, finish, failure } = self;
        let meta = |meta: &Meta<JobAnnotations>| {
            let Meta { labels, annotations, deletion, controller, finalizers, .. } = meta;
            (labels.clone(), *annotations, *deletion, controller.clone(), finalizers.clone())
        };
        meta(metadata) == meta(&other.metadata)
            && (is_assigned, phase, readiness, restarts)
                == (&other.is_assigned, &other.phase, &other.readiness, &other.restarts)
            && (restarts_in_all, finish, failure) == (&other.restarts_in_all, &other.finish, &other.failure)
    }

    /// Its rank for deletion. A Job knows neither costs nor neighbours.
    pub fn standing(&self) -> Standing {
        Standing {
            uid: self.metadata.uid,
            is_assigned: self.is_assigned,
            phase: self.phase,
            readiness: self.readiness,
            deletion_cost: DeletionCost::default(),
            colocated: 0,
            restarts: self.restarts,
            creation: self.metadata.creation,
        }
    }
}

shared::view!(Pod, PODS, JobAnnotations);

impl PodView for Pod {
    fn phase(&self) -> Phase {
        self.phase
    }
    fn readiness(&self) -> Readiness {
        self.readiness
    }
}

impl JobAnnotations {
    /// Upstream: `getCompletionIndex`, `pkg/controller/job/indexed_job_utils.go`.
    fn parse_index(text: &str) -> Option<i32> {
        // No Job has an index beyond int32.
        let index: i64 = text.parse().ok()?;
        i32::try_from(index).map_or(Some(i32::MAX), Some).filter(|_| index >= 0)
    }

    /// Upstream: `parseIndexFailureCountAnnotation`, `pkg/controller/job/backoff_utils.go`.
    fn parse_count(text: &str) -> i32 {
        text.parse().ok().filter(|count| *count >= 0).unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for JobAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = JobAnnotations;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JobAnnotations, A::Error> {
                let mut read = JobAnnotations::default();
                while let Some(Str(key)) = map.next_key::<Str<'de>>()? {
                    match key.as_ref() {
                        JOB_COMPLETION_INDEX => {
                            read.index = JobAnnotations::parse_index(&map.next_value::<Str<'de>>()?.0);
                        }
                        JOB_INDEX_FAILURE_COUNT => {
                            read.failures = JobAnnotations::parse_count(&map.next_value::<Str<'de>>()?.0);
                        }
                        JOB_INDEX_IGNORED_FAILURE_COUNT => {
                            read.ignored_failures = JobAnnotations::parse_count(&map.next_value::<Str<'de>>()?.0);
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(read)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Raw<'a> {
    metadata: Meta<JobAnnotations>,
    #[serde(borrow, default)]
    spec: RawSpec<'a>,
    #[serde(borrow, default)]
    status: RawStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec<'a> {
    #[serde(borrow)]
    node_name: Cow<'a, str>,
    #[serde(borrow)]
    init_containers: Option<Vec<InitContainer<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus<'a> {
    phase: Phase,
    #[serde(borrow)]
    conditions: Option<Vec<RawCondition<'a>>>,
    #[serde(borrow)]
    container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(borrow)]
    init_container_statuses: Option<Vec<ContainerStatus<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCondition<'a> {
    #[serde(borrow, rename = "type")]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    last_transition_time: Option<Time>,
}

/// The exit code, unless it is 0.
fn failed_with(container: &ContainerStatus<'_>) -> Option<i32> {
    container.terminated().map(|terminated| terminated.exit_code).filter(|code| *code != 0)
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec, status } = Raw::deserialize(deserializer)?;
        let finish = status.finish(&spec).or_else(|| {
            Some(Time::from_second(metadata.deletion?.second().saturating_sub(metadata.deletion_grace_seconds)))
        });
        Ok(Self {
            is_assigned: !spec.node_name.is_empty(),
            phase: status.phase,
            readiness: status.readiness(),
            restarts: status.restarts(&spec),
            restarts_in_all: status.restarts_in_all(),
            finish: finish.or(metadata.creation),
            failure: status.tells_of_failure().then(|| Box::new(status.failure())),
            metadata,
        })
    }
}

impl<'a> RawStatus<'a> {
    fn containers(&self) -> impl Iterator<Item = &ContainerStatus<'a>> {
        self.container_statuses.iter().flatten()
    }

    fn init_containers(&self) -> impl Iterator<Item = &ContainerStatus<'a>> {
        self.init_container_statuses.iter().flatten()
    }

    fn ready_condition(&self) -> Option<&RawCondition<'_>> {
        self.conditions.iter().flatten().find(|condition| condition.type_ == "Ready")
    }

    fn readiness(&self) -> Readiness {
        match self.ready_condition() {
            Some(ready) if ready.status == shared::api::condition::TRUE => {
                Readiness::Ready { since: ready.last_transition_time }
            }
            Some(_) | None => Readiness::NotReady,
        }
    }

    /// Upstream: `getFinishedTime`, `pkg/controller/job/backoff_utils.go`, as far as the status tells.
    fn finish(&self, spec: &RawSpec<'a>) -> Option<Time> {
        let finish = latest_finish(self.containers(), None);
        latest_finish(self.sidecars(spec), finish).or_else(|| {
            let ready = self.ready_condition().filter(|ready| ready.status == shared::api::condition::FALSE)?;
            ready.last_transition_time
        })
    }

    fn sidecars<'s>(&'s self, spec: &'s RawSpec<'a>) -> impl Iterator<Item = &'s ContainerStatus<'a>> {
        sidecars(spec.init_containers.as_deref(), self.init_container_statuses.as_deref())
    }

    fn restarts(&self, spec: &RawSpec<'a>) -> Restarts {
        Restarts::highest(self.container_statuses.as_deref(), self.sidecars(spec))
    }

    fn restarts_in_all(&self) -> i32 {
        let all = self.containers().chain(self.init_containers());
        all.fold(0_i32, |sum, container| sum.saturating_add(container.restart_count))
    }

    /// Whether the status has more than that of a running pod.
    fn tells_of_failure(&self) -> bool {
        let mut containers = self.containers().chain(self.init_containers());
        let mut conditions = self.conditions.iter().flatten();
        match self.phase {
            Phase::Failed => true,
            Phase::Succeeded => false,
            Phase::Pending | Phase::Running | Phase::Unknown | Phase::Other => {
                containers.any(|container| failed_with(container).is_some())
                    || conditions.any(|condition| !USUAL_CONDITIONS.contains(&&*condition.type_))
            }
        }
    }

    fn failure(&self) -> Failure {
        let exit = |container: &ContainerStatus<'_>| {
            Some(Exit { container: Text::new(&container.name), code: failed_with(container)? })
        };
        let conditions = self.conditions.iter().flatten();
        Failure {
            exits: self.containers().chain(self.init_containers()).filter_map(exit).collect(),
            conditions: conditions.map(|c| (Text::new(&c.type_), Text::new(&c.status))).collect(),
        }
    }
}

/// The latest end of these containers and `latest`; none if one of them has not ended or has no time.
///
/// Upstream: `getFinishTimeFromContainers`, `pkg/controller/job/backoff_utils.go`.
fn latest_finish<'s, 'a: 's>(
    mut containers: impl Iterator<Item = &'s ContainerStatus<'a>>,
    latest: Option<Time>,
) -> Option<Time> {
    containers.try_fold(latest, |latest, container| {
        let finish = container.terminated()?.finished_at?;
        Some(latest.max(Some(finish)))
    })?
}
