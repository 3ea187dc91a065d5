//! The creation of the new ReplicaSet, and its consequences.

use std::sync::Arc;

use jiff::Timestamp;
use shared::api::condition::{self, Condition};
use shared::api::names;
use shared::api::object::Kind;
use shared::api::template::{POD_TEMPLATE_HASH, with_match_label};
use shared::working::events::PlannedEvent;

use super::limits::{max_replicas, new_replicas, replica_count};
use super::progress;
use super::replica_sets::ReplicaSets;
use super::revision::{copied, new_revision};
use super::step::{NewReplicaSet, Scale, Step, scaling_event};
use crate::objects::{Annotations, Json, ReplicaSet, annotations, reasons};
use crate::observe::Observed;

/// The ReplicaSet of a template that has none yet.
///
/// Upstream: `getNewReplicaSet` for one that does not exist, `pkg/controller/deployment/sync.go`.
pub(super) fn create(observed: &Observed, sets: &ReplicaSets<'_>) -> Step {
    let spec = observed.spec();
    let replicas = match new_replicas(spec, replica_count(sets.all()), 0) {
        Ok(replicas) => replicas,
        Err(message) => return Step::Fail(message),
    };
    let hash = spec.template.hash(observed.status.collision_count);
    let own = [
        (annotations::REVISION, new_revision(sets).to_string()),
        (annotations::DESIRED_REPLICAS, spec.replicas.to_string()),
        (annotations::MAX_REPLICAS, max_replicas(spec).to_string()),
    ];
    let own = own.iter().map(|(key, value)| (*key, value.as_str()));
    let deployment = &observed.deployment.metadata;
    Step::CreateReplicaSet(Box::new(NewReplicaSet {
        name: names::with_suffix(deployment.name(), &hash, names::DNS1123_SUBDOMAIN_MAX_LENGTH),
        annotations: Annotations::new(copied(&deployment.annotations).chain(own)),
        replicas,
        min_ready_seconds: spec.min_ready_seconds,
        selector: Json(with_match_label(&spec.selector.0, POD_TEMPLATE_HASH, &hash)),
        template: spec.template.with_hash(&hash),
    }))
}

/// How the creation of the new ReplicaSet went.
#[derive(Clone, Debug, PartialEq)]
pub enum Creation {
    Created(Arc<ReplicaSet>),
    /// There is one of that name, which the cache may know already.
    AlreadyExists(Option<Arc<ReplicaSet>>),
    /// Nothing can be created in this namespace any more.
    NamespaceTerminating,
    /// The message says why not.
    Failed(String),
}

#[derive(Debug, PartialEq)]
pub struct AfterCreation {
    /// The new ReplicaSet; without one the sync ends with the creation's error.
    pub new: Option<Arc<ReplicaSet>>,
    pub progressing: Option<Condition>,
    pub collision_count: Option<i32>,
    pub event: Option<PlannedEvent>,
}

/// Decides what follows from how a creation went. A ReplicaSet that was there already is the new one if it is ours and
/// of our template: the cache was late. Any other one had the same hash by chance, and the next name has another.
///
/// Upstream: `getNewReplicaSet` after `Create`, `sync.go`.
pub fn after_creation(
    observed: &Observed,
    planned: &NewReplicaSet,
    creation: &Creation,
    now: Timestamp,
) -> AfterCreation {
    let mut after = AfterCreation { new: None, progressing: None, collision_count: None, event: None };
    let name = &planned.name;
    let has_deadline = progress::deadline(observed.spec()).is_some();
    match creation {
        Creation::Created(new) => {
            after.new = Some(Arc::clone(new));
            let scale = Scale { from: 0, to: planned.replicas };
            after.event = scaling_event(observed.deployment.reference(), name, scale);
            let message = format!("Created new replica set {name:?}");
            let condition = progress::condition(condition::TRUE, reasons::NEW_REPLICA_SET_CREATED, message, now);
            after.progressing = has_deadline.then_some(condition);
        }
        Creation::AlreadyExists(Some(found)) if is_ours(observed, found) => after.new = Some(Arc::clone(found)),
        Creation::AlreadyExists(Some(_)) => {
            after.collision_count = Some(observed.status.collision_count.unwrap_or(0).saturating_add(1));
        }
        Creation::AlreadyExists(None) | Creation::NamespaceTerminating => {}
        Creation::Failed(error) => {
            let message = format!("Failed to create new replica set {name:?}: {error}");
            let reason = reasons::REPLICA_SET_CREATE_ERROR;
            let condition = progress::condition(condition::FALSE, reason, message.clone(), now);
            after.progressing = has_deadline.then_some(condition);
            after.event = Some(PlannedEvent::warning(observed.deployment.reference(), reason, message));
        }
    }
    after
}

fn is_ours(observed: &Observed, found: &ReplicaSet) -> bool {
    found.metadata.is_controlled_by(observed.deployment.metadata.uid)
        && found.spec.template.equals_ignoring_hash(&observed.spec().template)
}
