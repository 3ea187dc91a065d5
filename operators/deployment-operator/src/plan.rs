//! Decides what one sync of a Deployment does, and why, from an observation and nothing else.
//!
//! The rooms below are upstream's files. A plan that creates the new ReplicaSet ends there, because what follows
//! depends on how that goes; the controller then plans again with the result. Left out: the status, which is
//! [`crate::status`]'s.

pub mod claim;
pub mod deployment_util;
pub mod progress;
pub mod reason;
pub mod recreate;
mod rollback;
mod rolling;
pub mod sync;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use shared::api::condition::Condition;
use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion, Uid};
use shared::api::template::PodTemplate;
use shared::runtime::decisions::{self, Reasoned};
use shared::runtime::events::EventType;

use crate::objects::{Annotations, DeploymentSpec, Json, ReplicaSet, Strategy, annotations, reasons};
use crate::observe::Observed;
use reason::{Reason, Rollout, Why};

/// One sync, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which way the sync goes, and so why it does what it does, or nothing.
    pub reason: Reason,
    /// The Deployment's revision annotation becomes this; written with the status.
    pub revision: Option<Text>,
    /// The Progressing condition becomes this before the status is worked out; written with it.
    pub progressing: Option<Condition>,
    /// The writes before the status, in this order; the first failure ends the plan.
    pub steps: Vec<Step>,
    /// The part of the status that is written afterwards.
    pub status: StatusScope,
}

/// A part of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusScope {
    /// Only what was decided on the way: the revision, and a condition.
    Decided,
    /// The observed generation.
    ObservedGeneration,
    /// The counts and the condition Available.
    Counts,
    /// All of it, with the progress of the rollout.
    Rollout,
}

/// One write, event or failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The last step of a plan: how it went decides what comes next.
    CreateReplicaSet(Box<NewReplicaSet>),
    /// A change of one ReplicaSet.
    UpdateReplicaSet(ReplicaSetUpdate),
    /// The end of an old ReplicaSet.
    DeleteReplicaSet(ReplicaSetDeletion),
    /// The end of a rollback: the annotation goes, and the template may change.
    RollBack(Box<Rollback>),
    /// Something to tell.
    Event(PlannedEvent),
    /// The sync cannot go on.
    Fail(String),
}

/// An event about the Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Normal or Warning.
    pub kind: EventType,
    /// One of [`reasons`].
    pub reason: &'static str,
    /// For a person.
    pub message: String,
}

/// The ReplicaSet of a template that has none yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewReplicaSet {
    /// The Deployment's name and a hash.
    pub name: String,
    /// The copied annotations of the Deployment, its revision, and its size.
    pub annotations: Annotations,
    /// The first size.
    pub replicas: i32,
    /// The Deployment's.
    pub min_ready_seconds: i32,
    /// The Deployment's, and the hash.
    pub selector: Json,
    /// The Deployment's, and the hash.
    pub template: PodTemplate,
}

/// A change of one ReplicaSet, refused by the server if it is another one or was changed meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetUpdate {
    /// Its namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// The state that was observed.
    pub resource_version: ResourceVersion,
    /// The annotations to set.
    pub annotations: BTreeMap<Text, Text>,
    /// `minReadySeconds`, if it changes.
    pub min_ready_seconds: Option<i32>,
    /// Its size, if it or what is noted about it changes.
    pub scale: Option<Scale>,
    /// Why.
    pub why: Why,
    /// The event to record afterwards.
    pub event: Option<PlannedEvent>,
    /// Whether the status has to wait until this works.
    pub before_status: bool,
}

/// From one size to another, or to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The size that was observed.
    pub from: i32,
    /// The size it gets.
    pub to: i32,
}

/// The end of an old ReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetDeletion {
    /// Its namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// The state that was observed: it must not have been scaled up since.
    pub resource_version: ResourceVersion,
    /// Why.
    pub why: Why,
}

/// How a rollback ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollback {
    /// The template to go back to, and its annotations; none where the rollback is given up.
    pub to: Option<RollbackTarget>,
    /// The event to record afterwards.
    pub event: Option<PlannedEvent>,
}

/// The template and annotations that a Deployment is rolled back to.
#[derive(Clone, Debug, PartialEq)]
pub struct RollbackTarget {
    /// The template of the ReplicaSet, without its hash.
    pub template: PodTemplate,
    /// The annotations to set.
    pub set: BTreeMap<Text, Text>,
    /// The annotations to remove.
    pub remove: Vec<Text>,
    /// Which revision it is.
    pub revision: i64,
}

/// Decides what one sync does.
///
/// Upstream: `syncDeployment`, `pkg/controller/deployment/deployment_controller.go`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut draft = Draft::new(observed, now);
    let spec = observed.spec();
    if observed.deployment.selects_everything() {
        return draft.selects_everything();
    }
    if let Err(invalid) = observed.deployment.selector() {
        let error = Text::new(&invalid.to_string());
        return draft.finish(Reason::InvalidSelector { error }, StatusScope::Decided);
    }
    let sets = sync::ReplicaSets::of(observed);
    if observed.deployment.metadata.is_being_deleted() {
        sync::plan_revision(&mut draft, &sets);
        return draft.finish(Reason::BeingDeleted, StatusScope::Counts);
    }
    progress::plan_pause_condition(&mut draft);
    if spec.paused {
        return sync::plan_sync(draft, Reason::Paused(Rollout::of(spec, &sets)), &sets);
    }
    if let Some(wanted) = rollback::rollback_to(observed) {
        return rollback::plan_rollback(draft, &sets, wanted);
    }
    if sync::is_scaling_event(observed) {
        return sync::plan_sync(draft, Reason::Scaling { wanted: spec.replicas }, &sets);
    }
    match &spec.strategy {
        Strategy::Recreate => recreate::plan_rollout(draft, &sets),
        Strategy::RollingUpdate { .. } => rolling::plan_rollout(draft, &sets),
        Strategy::Unknown(type_) => {
            sync::plan_revision(&mut draft, &sets);
            draft.push(Step::Fail(format!("unexpected deployment strategy type: {type_}")));
            draft.finish(Reason::UnknownStrategy { strategy: type_.clone() }, StatusScope::Decided)
        }
    }
}

/// A plan in the making.
struct Draft<'a> {
    observed: &'a Observed,
    now: Timestamp,
    revision: Option<Text>,
    progressing: Option<Condition>,
    steps: Vec<Step>,
}

impl<'a> Draft<'a> {
    fn new(observed: &'a Observed, now: Timestamp) -> Self {
        Self { observed, now, revision: None, progressing: None, steps: Vec::new() }
    }

    fn spec(&self) -> &'a DeploymentSpec {
        self.observed.spec()
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn finish(self, reason: Reason, status: StatusScope) -> Plan {
        let Self { observed: _, now: _, revision, progressing, steps } = self;
        Plan { reason, revision, progressing, steps, status }
    }

    fn selects_everything(mut self) -> Plan {
        let message = "This deployment is selecting all pods. A non-empty selector is required.".to_owned();
        self.push(Step::Event(PlannedEvent { kind: EventType::Warning, reason: reasons::SELECTING_ALL, message }));
        self.finish(Reason::SelectsEverything, StatusScope::ObservedGeneration)
    }

    /// Sets the size of a ReplicaSet and notes the Deployment's on it. Of two changes of the new ReplicaSet one is
    /// made: what its annotations need goes along.
    ///
    /// Upstream: `scaleReplicaSet`, `pkg/controller/deployment/sync.go`.
    fn scale(&mut self, replica_set: &ReplicaSet, scale: Scale, why: Why, before_status: bool) {
        let spec = self.spec();
        let max = deployment_util::max_replicas(spec);
        let noted =
            [(annotations::DESIRED_REPLICAS, spec.replicas.to_string()), (annotations::MAX_REPLICAS, max.to_string())];
        let noted = noted.iter().map(|(key, value)| (Text::new(key), Text::new(value)));
        let event = scaling_event(replica_set.metadata.name(), scale);
        let uid = replica_set.metadata.uid;
        let planned = self.steps.iter_mut().find_map(|step| match step {
            Step::UpdateReplicaSet(update) if update.uid == uid && update.scale.is_none() => Some(update),
            Step::UpdateReplicaSet(_)
            | Step::CreateReplicaSet(_)
            | Step::DeleteReplicaSet(_)
            | Step::RollBack(_)
            | Step::Event(_)
            | Step::Fail(_) => None,
        });
        if let Some(update) = planned {
            update.annotations.extend(noted);
            (update.scale, update.event, update.why) = (Some(scale), event, why);
            return;
        }
        self.push(Step::UpdateReplicaSet(ReplicaSetUpdate {
            key: replica_set.metadata.key.clone(),
            uid,
            resource_version: replica_set.metadata.resource_version,
            annotations: noted.collect(),
            min_ready_seconds: None,
            scale: Some(scale),
            why,
            event,
            before_status,
        }));
    }
}

/// The event about a scaling; none if the size stays.
fn scaling_event(name: &str, Scale { from, to }: Scale) -> Option<PlannedEvent> {
    let direction = match from.cmp(&to) {
        std::cmp::Ordering::Less => "up",
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => "down",
    };
    let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
    Some(PlannedEvent { kind: EventType::Normal, reason: reasons::SCALING_REPLICA_SET, message })
}

impl Plan {
    /// Whether the other plan does the same, for whatever reason.
    fn does_what(&self, other: &Self) -> bool {
        let Self { reason: _, revision, progressing, steps, status } = self;
        (revision, progressing, steps, status) == (&other.revision, &other.progressing, &other.steps, &other.status)
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() { write!(f, "{}", self.reason) } else { f.write_str(self.reason.in_short()) }?;
        if let Some(revision) = &self.revision {
            write!(f, "; revision {revision}")?;
        }
        if let Some(Condition { status, reason, .. }) = &self.progressing {
            write!(f, "; Progressing {status} {reason}")?;
        }
        for step in &self.steps {
            write!(f, "; {step}")?;
        }
        match self.status {
            StatusScope::Decided => Ok(()),
            StatusScope::ObservedGeneration => f.write_str("; status: observed generation"),
            StatusScope::Counts => f.write_str("; status: counts"),
            StatusScope::Rollout => f.write_str("; status: rollout"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateReplicaSet(new) => write!(f, "create {} of {}", new.name, new.replicas),
            Self::UpdateReplicaSet(update) => update.fmt(f),
            Self::DeleteReplicaSet(deletion) => write!(f, "delete {} ({})", deletion.key.name(), deletion.why),
            Self::RollBack(rollback) => match &rollback.to {
                Some(to) => write!(f, "roll back to revision {}", to.revision),
                None => f.write_str("give up the rollback"),
            },
            Self::Event(PlannedEvent { kind, reason, message }) => write!(f, "{kind:?} {reason}: {message}"),
            Self::Fail(message) => write!(f, "fail: {message}"),
        }
    }
}

impl fmt::Display for ReplicaSetUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.key.name();
        match self.scale {
            Some(Scale { from, to }) if from != to => write!(f, "scale {name} {from}→{to}")?,
            Some(_) => write!(f, "note the size on {name}")?,
            None => write!(f, "update {name}")?,
        }
        let noted_size = [annotations::DESIRED_REPLICAS, annotations::MAX_REPLICAS];
        for (key, value) in self.annotations.iter().filter(|(key, _)| !noted_size.contains(&key.as_str())) {
            write!(f, " {key}={value}")?;
        }
        if let Some(seconds) = self.min_ready_seconds {
            write!(f, " minReadySeconds={seconds}")?;
        }
        write!(f, " ({})", self.why)
    }
}
