//! The revision of the new ReplicaSet, and the other annotations that it and the Deployment share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use shared::api::condition::{self, Condition};
use shared::api::intern::Text;

use super::progress;
use super::reasons::Why;
use super::replica_sets::ReplicaSets;
use super::step::ReplicaSetUpdate;
use crate::objects::{Annotations, ReplicaSet, annotations, conditions, reasons};
use crate::observe::Observed;

/// A ReplicaSet's place in the history: 0 if it has none. None if its annotation is not a number.
///
/// Upstream: `Revision`, `pkg/controller/deployment/util/deployment_util.go`.
pub(super) fn revision(replica_set: &ReplicaSet) -> Option<i64> {
    replica_set.metadata.annotations.get(annotations::REVISION).map_or(Some(0), |text| text.parse().ok())
}

/// The revision that the new ReplicaSet gets.
///
/// Upstream: `MaxRevision`, `deployment_util.go`.
pub(super) fn new_revision(sets: &ReplicaSets<'_>) -> i64 {
    sets.old.iter().filter_map(|old| revision(old)).fold(0, i64::max).saturating_add(1)
}

/// The revision that the new ReplicaSet has once its annotations are written.
pub(super) fn revision_of_new(sets: &ReplicaSets<'_>) -> Option<i64> {
    let current = own_revision(&sets.new?.metadata.annotations)?;
    Some(current.max(new_revision(sets)))
}

/// The changes that make the new ReplicaSet and the Deployment agree.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// The update of the ReplicaSet. The Deployment follows in the next sync.
    pub(super) update: Option<ReplicaSetUpdate>,
    pub(super) revision: Option<Text>,
    /// The Deployment's first Progressing condition.
    pub(super) progressing: Option<Condition>,
}

/// Upstream: `getNewReplicaSet` for one that exists, `pkg/controller/deployment/sync.go`.
pub(super) fn agree(observed: &Observed, sets: &ReplicaSets<'_>, now: Timestamp) -> Agreement {
    let Some(new) = sets.new else { return Agreement::default() };
    let spec = observed.spec();
    let changes =
        annotation_changes(&observed.deployment.metadata.annotations, &new.metadata.annotations, new_revision(sets));
    let min_ready_seconds = (new.spec.min_ready_seconds != spec.min_ready_seconds).then_some(spec.min_ready_seconds);
    if changes.are_to_be_written || min_ready_seconds.is_some() {
        let update = ReplicaSetUpdate {
            key: new.metadata.key.clone(),
            uid: new.metadata.uid,
            resource_version: new.metadata.resource_version,
            annotations: changes.set,
            min_ready_seconds,
            scale: None,
            why: Why::AsDeployment,
            event: None,
            before_status: true,
        };
        return Agreement { update: Some(update), ..Agreement::default() };
    }
    let revision = new.metadata.annotations.get(annotations::REVISION).unwrap_or_default();
    let is_first = condition::find(&observed.status.conditions, conditions::PROGRESSING).is_none();
    let progressing = (is_first && progress::deadline(spec).is_some()).then(|| {
        let message = format!("Found new replica set {:?}", new.metadata.name());
        progress::condition(condition::TRUE, reasons::FOUND_NEW_REPLICA_SET, message, now)
    });
    Agreement { update: None, revision: (observed.revision() != revision).then(|| Text::new(revision)), progressing }
}

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

/// The revision annotation of the new ReplicaSet. An empty one counts as none; on an old ReplicaSet it is not a number.
fn own_revision(new: &Annotations) -> Option<i64> {
    match new.get(annotations::REVISION) {
        None | Some("") => Some(0),
        Some(text) => text.parse().ok(),
    }
}

/// The annotations that go from a Deployment to its ReplicaSet.
///
/// Upstream: `copyDeploymentAnnotationsToReplicaSet`, `deployment_util.go`.
pub(super) fn copied(deployment: &Annotations) -> impl Iterator<Item = (&str, &str)> {
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
