//! Which ReplicaSet is the new one, what it and the Deployment note about each other, and scaling without a rollout.
//!
//! Left out: the choice between a rollout and this, which is [`super::plan`]'s.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::condition::{self, Condition};
use shared::api::intern::Text;
use shared::api::names;
use shared::api::template::{POD_TEMPLATE_HASH, with_match_label};
use shared::runtime::events::EventType;

use super::deployment_util::{
    count_annotation, is_saturated, max_replicas, new_replicas, proportion, replica_count, revision, to_i32,
};
use super::{
    Draft, NewReplicaSet, Plan, PlannedEvent, Reason, ReplicaSetDeletion, ReplicaSetUpdate, Scale, StatusScope, Step,
    Why, progress, rollback, scaling_event,
};
use crate::objects::{Annotations, Json, ReplicaSet, Strategy, annotations, conditions, reasons};
use crate::observe::Observed;

/// The ReplicaSets of a Deployment, told apart by template.
pub struct ReplicaSets<'a> {
    /// The oldest one of the Deployment's template.
    pub new: Option<&'a Arc<ReplicaSet>>,
    /// All others, oldest first.
    pub old: Vec<&'a Arc<ReplicaSet>>,
}

impl<'a> ReplicaSets<'a> {
    /// Upstream: `FindNewReplicaSet`, `FindOldReplicaSets`, `pkg/controller/deployment/util/deployment_util.go`.
    pub fn of(observed: &'a Observed) -> Self {
        let template = &observed.spec().template;
        let new = observed.replica_sets.iter().find(|candidate| candidate.spec.template.equals_ignoring_hash(template));
        let is_old = |candidate: &&Arc<ReplicaSet>| new.is_none_or(|new| new.metadata.uid != candidate.metadata.uid);
        Self { new, old: observed.replica_sets.iter().filter(is_old).collect() }
    }

    /// Old ones first, as upstream appends the new one.
    pub fn all(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.old.iter().copied().chain(self.new).map(|replica_set| &**replica_set)
    }

    /// The old ones that are to have pods, oldest first.
    pub fn active_old(&self) -> impl DoubleEndedIterator<Item = &'a ReplicaSet> {
        self.old.iter().map(|replica_set| &***replica_set).filter(|replica_set| replica_set.is_active())
    }

    /// Upstream: `MaxRevision`, `deployment_util.go`.
    fn max_old_revision(&self) -> i64 {
        self.old.iter().filter_map(|replica_set| revision(replica_set)).fold(0, i64::max)
    }

    /// The revision that the new ReplicaSet gets.
    fn new_revision(&self) -> i64 {
        self.max_old_revision().saturating_add(1)
    }

    /// The revision that the new ReplicaSet has once its annotations are right.
    pub fn revision_of_new(&self) -> Option<i64> {
        self.new.and_then(|new| own_revision(&new.metadata.annotations)).map(|current| current.max(self.new_revision()))
    }
}

/// Plans the annotations of the new ReplicaSet and the Deployment. Where the ReplicaSet changes, the Deployment follows
/// with the next sync.
///
/// Upstream: `getNewReplicaSet` for one that exists, `pkg/controller/deployment/sync.go`.
pub(super) fn plan_revision(draft: &mut Draft<'_>, sets: &ReplicaSets<'_>) {
    let Some(new) = sets.new else { return };
    let (observed, spec) = (draft.observed, draft.spec());
    let changes =
        annotation_changes(&observed.deployment.metadata.annotations, &new.metadata.annotations, sets.new_revision());
    let min_ready_seconds = (new.spec.min_ready_seconds != spec.min_ready_seconds).then_some(spec.min_ready_seconds);
    if changes.are_to_be_written || min_ready_seconds.is_some() {
        draft.push(Step::UpdateReplicaSet(ReplicaSetUpdate {
            key: new.metadata.key.clone(),
            uid: new.metadata.uid,
            resource_version: new.metadata.resource_version,
            annotations: changes.set,
            min_ready_seconds,
            scale: None,
            why: Why::AsDeployment,
            event: None,
            before_status: true,
        }));
        return;
    }
    let revision = new.metadata.annotations.get(annotations::REVISION).unwrap_or_default();
    if observed.revision() != revision {
        draft.revision = Some(Text::new(revision));
    }
    let progressing = condition::find(&observed.status.conditions, conditions::PROGRESSING);
    if progress::deadline(spec).is_some() && progressing.is_none() && draft.progressing.is_none() {
        let message = format!("Found new replica set {:?}", new.metadata.name());
        let reason = reasons::FOUND_NEW_REPLICA_SET;
        draft.progressing = Some(progress::condition(condition::TRUE, reason, message, draft.now));
    }
}

/// The annotations to set on a ReplicaSet.
#[derive(Debug, PartialEq)]
struct AnnotationChanges {
    set: BTreeMap<Text, Text>,
    /// Upstream gives up on a revision that is no number, and then the rest is written only along with something else.
    are_to_be_written: bool,
}

/// Upstream: `SetNewReplicaSetAnnotations` for one that exists, `deployment_util.go`.
fn annotation_changes(deployment: &Annotations, replica_set: &Annotations, new_revision: i64) -> AnnotationChanges {
    let differs = |key: &str, value: &str| replica_set.get(key) != Some(value);
    let mut set: BTreeMap<Text, Text> = copied(deployment)
        .filter(|(key, value)| differs(key, value))
        .map(|(key, value)| (Text::new(key), Text::new(value)))
        .collect();
    let old = replica_set.get(annotations::REVISION);
    let Some(old_number) = own_revision(replica_set) else {
        return AnnotationChanges { set, are_to_be_written: false };
    };
    if old_number < new_revision {
        set.insert(Text::new(annotations::REVISION), Text::new(&new_revision.to_string()));
        let history = replica_set.get(annotations::REVISION_HISTORY).unwrap_or_default();
        if let Some(history) = old.and_then(|old| longer_history(history, old)) {
            set.insert(Text::new(annotations::REVISION_HISTORY), Text::new(&history));
        }
    }
    AnnotationChanges { are_to_be_written: !set.is_empty(), set }
}

/// The revision that the new ReplicaSet notes, to be raised. An empty text is no revision yet; of an old one it is an
/// odd one.
fn own_revision(new: &Annotations) -> Option<i64> {
    match new.get(annotations::REVISION) {
        None | Some("") => Some(0),
        Some(text) => text.parse().ok(),
    }
}

/// The annotations that go from a Deployment to its ReplicaSet.
///
/// Upstream: `copyDeploymentAnnotationsToReplicaSet`, `deployment_util.go`.
fn copied(deployment: &Annotations) -> impl Iterator<Item = (&str, &str)> {
    deployment.iter().filter(|(key, _)| !annotations::is_skipped(key))
}

/// The history with one revision more; its oldest entries make room. None if there can be no room.
fn longer_history(history: &str, revision: &str) -> Option<String> {
    /// About a hundred entries.
    const MAX_LENGTH: usize = 2000;
    if history.is_empty() || history.starts_with(',') {
        return Some(revision.to_owned());
    }
    let mut rest = Some(history);
    while let Some(kept) = rest {
        if kept.len() + 1 + revision.len() <= MAX_LENGTH {
            return Some(format!("{kept},{revision}"));
        }
        rest = kept.split_once(',').map(|(_, rest)| rest);
    }
    (revision.len() <= MAX_LENGTH).then(|| revision.to_owned())
}

/// Plans the ReplicaSet of a template that has none.
///
/// Upstream: `getNewReplicaSet` for one that does not exist, `sync.go`.
pub(super) fn plan_creation(draft: &mut Draft<'_>, sets: &ReplicaSets<'_>) {
    let spec = draft.spec();
    let replicas = match new_replicas(spec, replica_count(sets.all()), 0) {
        Ok(replicas) => replicas,
        Err(message) => return draft.push(Step::Fail(message)),
    };
    let hash = spec.template.hash(draft.observed.status.collision_count);
    let own = [
        (annotations::REVISION, sets.new_revision().to_string()),
        (annotations::DESIRED_REPLICAS, spec.replicas.to_string()),
        (annotations::MAX_REPLICAS, max_replicas(spec).to_string()),
    ];
    let own = own.iter().map(|(key, value)| (*key, value.as_str()));
    let deployment = &draft.observed.deployment.metadata;
    draft.push(Step::CreateReplicaSet(Box::new(NewReplicaSet {
        name: names::with_suffix(deployment.name(), &hash, names::DNS1123_SUBDOMAIN_MAX_LENGTH),
        annotations: Annotations::new(copied(&deployment.annotations).chain(own)),
        replicas,
        min_ready_seconds: spec.min_ready_seconds,
        selector: Json(with_match_label(&spec.selector.0, POD_TEMPLATE_HASH, &hash)),
        template: spec.template.with_label(POD_TEMPLATE_HASH, &hash),
    })));
}

/// How the creation of the new ReplicaSet went.
#[derive(Clone, Debug, PartialEq)]
pub enum Creation {
    /// It is there now.
    Created(Arc<ReplicaSet>),
    /// There is one of that name, which the cache may know already.
    AlreadyExists(Option<Arc<ReplicaSet>>),
    /// Nothing can be created in this namespace any more.
    NamespaceTerminating,
    /// The message says why not.
    Failed(String),
}

/// The consequences of a creation.
#[derive(Debug, PartialEq)]
pub struct AfterCreation {
    /// The new ReplicaSet; without one the sync ends with the creation's error.
    pub new: Option<Arc<ReplicaSet>>,
    /// The Progressing condition becomes this.
    pub progressing: Option<Condition>,
    /// The Deployment's count of collisions becomes this.
    pub collision_count: Option<i32>,
    /// Something to tell.
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
    now: jiff::Timestamp,
) -> AfterCreation {
    let mut after = AfterCreation { new: None, progressing: None, collision_count: None, event: None };
    let name = &planned.name;
    let has_deadline = progress::deadline(observed.spec()).is_some();
    match creation {
        Creation::Created(new) => {
            after.new = Some(Arc::clone(new));
            after.event = scaling_event(name, Scale { from: 0, to: planned.replicas });
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
            after.event = Some(PlannedEvent { kind: EventType::Warning, reason, message });
        }
    }
    after
}

fn is_ours(observed: &Observed, found: &ReplicaSet) -> bool {
    found.metadata.is_controlled_by(observed.deployment.metadata.uid)
        && found.spec.template.equals_ignoring_hash(&observed.spec().template)
}

/// Whether some ReplicaSet was last scaled for another size of the Deployment.
///
/// Only a rolling update knows proportions: several ReplicaSets of another strategy are left to its rollout. Upstream
/// takes them for a scaling event too, does nothing about it, and so never gets to the rollout.
///
/// Upstream: `isScalingEvent`, `sync.go`.
pub(super) fn is_scaling_event(observed: &Observed) -> bool {
    let spec = observed.spec();
    let active = observed.replica_sets.iter().filter(|replica_set| replica_set.is_active()).count();
    let can_scale = active <= 1 || matches!(spec.strategy, Strategy::RollingUpdate { .. });
    can_scale && observed.replica_sets.iter().any(|replica_set| calls_for_scaling(replica_set, spec.replicas))
}

fn calls_for_scaling(replica_set: &ReplicaSet, replicas: i32) -> bool {
    let desired = count_annotation(replica_set, annotations::DESIRED_REPLICAS);
    replica_set.is_active() && desired.is_some_and(|desired| desired != replicas)
}

/// Scales without a rollout: the Deployment is paused, or its size was changed.
///
/// Upstream: `sync`, `sync.go`.
pub(super) fn plan_sync(mut draft: Draft<'_>, reason: Reason, sets: &ReplicaSets<'_>) -> Plan {
    plan_revision(&mut draft, sets);
    plan_scale(&mut draft, sets);
    if draft.spec().paused && rollback::rollback_to(draft.observed).is_none() {
        plan_cleanup(&mut draft, sets);
    }
    draft.finish(reason, StatusScope::Counts)
}

/// Upstream: `scale`, `sync.go`.
fn plan_scale(draft: &mut Draft<'_>, sets: &ReplicaSets<'_>) {
    let spec = draft.spec();
    let new = sets.new.map(|new| &**new).filter(|new| new.is_active());
    let active: Vec<&ReplicaSet> = sets.active_old().rev().chain(new).collect();
    let only = match active[..] {
        [] => sets.new.or(sets.old.last().copied()).map(|replica_set| &**replica_set),
        [only] => Some(only),
        [..] => None,
    };
    if let Some(only) = only {
        // One that has the right size by chance must note it too. Upstream leaves the old note, sees a scaling event in
        // it for ever, and never gets to the rollout.
        if only.spec.replicas != spec.replicas || calls_for_scaling(only, spec.replicas) {
            let why = Why::OnlyOne { wanted: spec.replicas };
            draft.scale(only, Scale { from: only.spec.replicas, to: spec.replicas }, why, true);
        }
        return;
    }
    if let Some(new) = sets.new.filter(|new| is_saturated(spec, new)) {
        let why = Why::NewHasAll { available: new.status.available_replicas };
        for old in sets.active_old().rev() {
            draft.scale(old, Scale { from: old.spec.replicas, to: 0 }, why, true);
        }
        return;
    }
    if matches!(spec.strategy, Strategy::RollingUpdate { .. }) {
        plan_proportional_scale(draft, active);
    }
}

/// Grows or shrinks all ReplicaSets in proportion, so that a rollout goes neither on nor back.
fn plan_proportional_scale(draft: &mut Draft<'_>, mut active: Vec<&ReplicaSet>) {
    let (spec, status_replicas) = (draft.spec(), draft.observed.deployment.status.replicas);
    let allowed = if spec.replicas > 0 { i64::from(max_replicas(spec)) } else { 0 };
    let to_add = allowed - replica_count(active.iter().copied());
    match to_add.cmp(&0) {
        // The larger one first; of equal ones the newest grows first and the oldest shrinks first.
        Ordering::Greater => {
            active.sort_by_key(|replica_set| (Reverse(replica_set.spec.replicas), Reverse(age(replica_set))));
        }
        Ordering::Less => active.sort_by_key(|replica_set| (Reverse(replica_set.spec.replicas), age(replica_set))),
        Ordering::Equal => {}
    }
    let mut added = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for replica_set in &active {
        let share = proportion(replica_set, spec, status_replicas, to_add, added);
        sizes.push(i64::from(replica_set.spec.replicas) + share);
        added += share;
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    for (replica_set, size) in active.into_iter().zip(sizes) {
        let scale = Scale { from: replica_set.spec.replicas, to: to_i32(size) };
        if scale.from != scale.to || !has_noted_size(draft, replica_set) {
            draft.scale(replica_set, scale, Why::InProportion { change: to_add }, true);
        }
    }
}

/// Older before younger; by name where that is equal.
///
/// Upstream: `ReplicaSetsByCreationTimestamp`, `pkg/controller/controller_utils.go`.
pub fn age(replica_set: &ReplicaSet) -> impl Ord + use<'_> {
    (replica_set.metadata.creation, replica_set.metadata.name())
}

/// Upstream: `ReplicasAnnotationsNeedUpdate`, `deployment_util.go`.
fn has_noted_size(draft: &Draft<'_>, replica_set: &ReplicaSet) -> bool {
    let spec = draft.spec();
    let notes = |key: &str, count: i32| replica_set.metadata.annotations.get(key) == Some(&count.to_string());
    notes(annotations::DESIRED_REPLICAS, spec.replicas) && notes(annotations::MAX_REPLICAS, max_replicas(spec))
}

/// Plans the end of old ReplicaSets beyond the history limit.
///
/// Upstream: `cleanupDeployment`, `sync.go`.
pub(super) fn plan_cleanup(draft: &mut Draft<'_>, sets: &ReplicaSets<'_>) {
    let Some(limit) = draft.spec().revision_history_limit.filter(|limit| *limit != i32::MAX) else { return };
    let mut cleanable: Vec<&ReplicaSet> =
        sets.old.iter().map(|old| &***old).filter(|old| !old.metadata.is_being_deleted()).collect();
    let surplus = cleanable.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    let why = Why::BeyondHistoryLimit { limit, old: cleanable.len() };
    // Where a revision is no number, only age can tell; upstream mixes the two orders.
    let have_revisions = cleanable.iter().all(|old| revision(old).is_some());
    cleanable.sort_by_key(|old| (revision(old).filter(|_| have_revisions), age(old)));
    for old in cleanable.into_iter().take(surplus) {
        let is_settled = old.metadata.generation <= old.status.observed_generation;
        if old.status.replicas == 0 && old.spec.replicas == 0 && is_settled {
            draft.push(Step::DeleteReplicaSet(ReplicaSetDeletion {
                key: old.metadata.key.clone(),
                uid: old.metadata.uid,
                resource_version: old.metadata.resource_version,
                why,
            }));
        }
    }
}
