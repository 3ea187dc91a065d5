//! The rollback that an annotation asks for, as a field of `extensions/v1beta1` did. `kubectl rollout undo` changes the
//! template itself.

use std::collections::BTreeMap;

use shared::api::intern::Text;
use shared::api::object::Kind;
use shared::working::events::PlannedEvent;

use super::new_replica_set::create;
use super::reasons::Reason;
use super::replica_sets::ReplicaSets;
use super::revision::{revision, revision_of_new};
use super::step::{Rollback, RollbackTarget, Step};
use super::{Decision, StatusScope};
use crate::objects::{Annotations, ReplicaSet, annotations, reasons};
use crate::observe::Observed;

/// The revision that is asked for, if any.
///
/// Upstream: `getRollbackTo`, `pkg/controller/deployment/rollback.go`.
pub(super) fn rollback_to(observed: &Observed) -> Option<i64> {
    observed.deployment.metadata.annotations.get(annotations::ROLLBACK_TO)?.parse().ok()
}

/// Upstream: `rollback`, `rollback.go`.
pub(super) fn roll_back<'a>(observed: &Observed, sets: &ReplicaSets<'a>, wanted: i64) -> Decision<'a> {
    let reason = Reason::Rollback { revision: wanted };
    if sets.new.is_none() {
        return Decision::only(reason, create(observed, sets));
    }
    let rollback = match target(sets, wanted) {
        Ok((revision, replica_set)) => to_template(observed, revision, replica_set),
        Err(message) => Err((reasons::ROLLBACK_REVISION_NOT_FOUND, message.to_owned())),
    };
    let then = match rollback {
        Ok(rollback) => vec![Step::RollBack(Box::new(rollback))],
        Err((reason, message)) => {
            let event = PlannedEvent::warning(observed.deployment.reference(), reason, message);
            let given_up = Rollback { to: None, event: None };
            vec![Step::Event(event), Step::RollBack(Box::new(given_up))]
        }
    };
    Decision { then, ..Decision::new(reason, StatusScope::Decided) }
}

/// The ReplicaSet of the revision that is asked for, and the revision.
fn target<'a>(sets: &ReplicaSets<'a>, wanted: i64) -> Result<(i64, &'a ReplicaSet), &'static str> {
    let with_revisions: Vec<(Option<i64>, &ReplicaSet)> = sets
        .old
        .iter()
        .map(|old| (revision(old), &***old))
        .chain(sets.new.map(|new| (revision_of_new(sets), &**new)))
        .collect();
    let wanted = match wanted {
        0 => last_revision(with_revisions.iter().filter_map(|(revision, _)| *revision))
            .ok_or("Unable to find last revision.")?,
        wanted => wanted,
    };
    let found = with_revisions.into_iter().find(|(revision, _)| *revision == Some(wanted));
    found.map(|(_, replica_set)| (wanted, replica_set)).ok_or("Unable to find the revision to rollback to.")
}

/// The second highest revision; two equal ones are the highest and the second. None if it is 0.
///
/// Upstream: `LastRevision`, `pkg/controller/deployment/util/deployment_util.go`.
fn last_revision(revisions: impl Iterator<Item = i64>) -> Option<i64> {
    let (_, second) =
        revisions.fold(
            (0, 0),
            |(highest, second), revision| {
                if revision >= highest { (revision, highest) } else { (highest, second.max(revision)) }
            },
        );
    (second != 0).then_some(second)
}

/// The rollback, or the reason and the message of the event about why there is none.
///
/// Upstream: `rollbackToTemplate`, `rollback.go`.
fn to_template(
    observed: &Observed,
    revision: i64,
    replica_set: &ReplicaSet,
) -> Result<Rollback, (&'static str, String)> {
    let (deployment, name) = (&observed.deployment, observed.deployment.metadata.name());
    if deployment.spec.template.equals_ignoring_hash(&replica_set.spec.template) {
        let message = format!("The rollback revision contains the same template as current deployment {name:?}");
        return Err((reasons::ROLLBACK_TEMPLATE_UNCHANGED, message));
    }
    let (set, remove) = annotation_changes(&deployment.metadata.annotations, &replica_set.metadata.annotations);
    let template = replica_set.spec.template.without_hash();
    let message = format!("Rolled back deployment {name:?} to revision {revision}");
    Ok(Rollback {
        to: Some(RollbackTarget { template, set, remove, revision }),
        event: Some(PlannedEvent::normal(deployment.reference(), reasons::ROLLBACK, message)),
    })
}

/// The annotations go back with the template; those that never are copied stay.
///
/// Upstream: `SetDeploymentAnnotationsTo`, `deployment_util.go`.
fn annotation_changes(deployment: &Annotations, replica_set: &Annotations) -> (BTreeMap<Text, Text>, Vec<Text>) {
    let copied = |(key, _): &(&str, &str)| !annotations::is_skipped(key);
    let set = replica_set.iter().filter(copied).filter(|(key, value)| deployment.get(key) != Some(value));
    let remove = deployment.iter().filter(copied).filter(|(key, _)| replica_set.get(key).is_none());
    (
        set.map(|(key, value)| (Text::new(key), Text::new(value))).collect(),
        remove.map(|(key, _)| Text::new(key)).collect(),
    )
}
