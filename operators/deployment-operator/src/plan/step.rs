//! The steps of a plan.

use std::collections::BTreeMap;
use std::fmt;

use shared::api::intern::Text;
use shared::api::object::{Key, Kind, ObjectReference, ResourceVersion, Uid};
use shared::api::template::PodTemplate;
use shared::working::events::PlannedEvent;

use super::limits::max_replicas;
use super::reasons::Why;
use crate::objects::{Annotations, Deployment, Json, ReplicaSet, annotations, reasons};

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The last step of a plan: how it went decides what comes next.
    CreateReplicaSet(Box<NewReplicaSet>),
    UpdateReplicaSet(ReplicaSetUpdate),
    DeleteReplicaSet(ReplicaSetDeletion),
    /// The end of a rollback: the annotation goes, and the template may change.
    RollBack(Box<Rollback>),
    Event(PlannedEvent),
    Fail(String),
}

/// The ReplicaSet of a template that has none yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewReplicaSet {
    pub name: String,
    /// The copied annotations of the Deployment, its revision, and its size.
    pub annotations: Annotations,
    pub replicas: i32,
    pub min_ready_seconds: i32,
    pub selector: Json,
    pub template: PodTemplate,
}

/// A change of one ReplicaSet, refused by the server if it is another one or was changed meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetUpdate {
    pub key: Key,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    pub annotations: BTreeMap<Text, Text>,
    /// `minReadySeconds`, if it changes.
    pub min_ready_seconds: Option<i32>,
    /// Its size, if it or what is noted about it changes.
    pub scale: Option<Scale>,
    pub why: Why,
    pub event: Option<PlannedEvent>,
    /// Whether the status has to wait until this works.
    pub before_status: bool,
}

/// From one size to another, or to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub from: i32,
    pub to: i32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetDeletion {
    pub key: Key,
    pub uid: Uid,
    /// The state that was observed: it must not have been scaled up since.
    pub resource_version: ResourceVersion,
    pub why: Why,
}

/// How a rollback ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollback {
    /// The template to go back to, and its annotations; none where the rollback is given up.
    pub to: Option<RollbackTarget>,
    pub event: Option<PlannedEvent>,
}

/// The template and annotations that a Deployment is rolled back to.
#[derive(Clone, Debug, PartialEq)]
pub struct RollbackTarget {
    /// The template of the ReplicaSet, without its hash.
    pub template: PodTemplate,
    pub set: BTreeMap<Text, Text>,
    pub remove: Vec<Text>,
    pub revision: i64,
}

pub(super) struct Resize<'a> {
    pub(super) replica_set: &'a ReplicaSet,
    pub(super) scale: Scale,
    pub(super) why: Why,
    /// Whether the status has to wait until this works.
    pub(super) before_status: bool,
}

impl<'a> Resize<'a> {
    pub(super) fn new(replica_set: &'a ReplicaSet, to: i32, why: Why) -> Self {
        Self { replica_set, scale: Scale { from: replica_set.spec.replicas, to }, why, before_status: true }
    }

    /// The update, with the Deployment's size noted on the ReplicaSet.
    ///
    /// Upstream: `scaleReplicaSet`, `pkg/controller/deployment/sync.go`.
    fn update(self, deployment: &Deployment) -> ReplicaSetUpdate {
        let spec = &deployment.spec;
        let Self { replica_set, scale, why, before_status } = self;
        let noted = [(annotations::DESIRED_REPLICAS, spec.replicas), (annotations::MAX_REPLICAS, max_replicas(spec))];
        ReplicaSetUpdate {
            key: replica_set.metadata.key.clone(),
            uid: replica_set.metadata.uid,
            resource_version: replica_set.metadata.resource_version,
            annotations: noted.map(|(key, count)| (Text::new(key), Text::new(&count.to_string()))).into(),
            min_ready_seconds: None,
            scale: Some(scale),
            why,
            event: scaling_event(deployment.reference(), replica_set.metadata.name(), scale),
            before_status,
        }
    }
}

/// The updates of ReplicaSets, in order. Where the new one has both an update and a new size, they are one write.
pub(super) fn updates(
    deployment: &Deployment,
    of_new: Option<ReplicaSetUpdate>,
    resizes: Vec<Resize<'_>>,
) -> impl Iterator<Item = Step> + use<> {
    let mut updates: Vec<ReplicaSetUpdate> = of_new.into_iter().collect();
    for resize in resizes {
        let resized = resize.update(deployment);
        match updates.iter_mut().find(|update| update.uid == resized.uid && update.scale.is_none()) {
            Some(update) => {
                update.annotations.extend(resized.annotations);
                (update.scale, update.event, update.why) = (resized.scale, resized.event, resized.why);
            }
            None => updates.push(resized),
        }
    }
    updates.into_iter().map(Step::UpdateReplicaSet)
}

/// The event about a scaling; none if the size stays.
pub(super) fn scaling_event(
    deployment: ObjectReference,
    name: &str,
    Scale { from, to }: Scale,
) -> Option<PlannedEvent> {
    let direction = match from.cmp(&to) {
        std::cmp::Ordering::Less => "up",
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => "down",
    };
    let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
    Some(PlannedEvent::normal(deployment, reasons::SCALING_REPLICA_SET, message))
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
            Self::Event(PlannedEvent { about: _, kind, reason, message }) => write!(f, "{kind:?} {reason}: {message}"),
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
