//! Deletion of pods of an earlier revision, so that others are created from the current template.
//!
//! Upstream: the end of `updateStatefulSet` and `updateStatefulSetAfterInvariantEstablished`,
//! `pkg/controller/statefulset/stateful_set_control.go`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared::api::int_or_percent::Rounding;
use shared::api::object::Uid;

use super::Wait;
use super::places::{Known, Places, is_available, long_label};
use super::reasons::{Until, Why};
use super::step::Deletion;
use crate::objects::pod::Pod;
use crate::objects::{StatefulSetSpec, UpdateType};

/// How many pods are unavailable, and how many may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// Pods that are missing, not available, or being deleted.
    pub unavailable: i64,
    pub max: i64,
}

/// How many pods may be unavailable during a rolling update: at least one.
///
/// Upstream: `getStatefulSetMaxUnavailable`, `pkg/controller/statefulset/stateful_set_utils.go`.
pub fn max_unavailable(spec: &StatefulSetSpec) -> i64 {
    let limit = spec.update_strategy.rolling_update.as_ref().and_then(|rolling| rolling.max_unavailable.as_ref());
    // Validation refuses a text that is no percentage.
    let limit = limit.and_then(|limit| limit.of(spec.replicas, Rounding::Down).ok());
    i64::from(limit.unwrap_or(1).max(1))
}

pub(super) fn unavailability(spec: &StatefulSetSpec, places: &Places<'_>, now: Timestamp) -> Unavailability {
    let available = places.replicas.values().filter(|pod| is_available(pod, spec, now)).count();
    let unavailable = i64::from(spec.replicas.max(0)) - i64::try_from(available).unwrap_or(i64::MAX);
    Unavailability { unavailable, max: max_unavailable(spec) }
}

/// The pods that are deleted for the update, and the pod that it waits for. `deleted` pods are deleted anyway. A pod that
/// no other one could replace stays; upstream deletes it.
pub(super) fn update(known: &Known<'_>, deleted: &BTreeSet<Uid>) -> (Vec<Deletion>, Option<Wait>) {
    if known.spec().update_strategy.type_ == UpdateType::OnDelete {
        (Vec::new(), None)
    } else if let Some(wait) = irreplaceable(known) {
        (Vec::new(), Some(wait))
    } else if known.gates.max_unavailable {
        (several(known, deleted), None)
    } else {
        match one(known, deleted) {
            Ok(deletion) => (deletion.into_iter().collect(), None),
            Err(wait) => (Vec::new(), Some(wait)),
        }
    }
}

/// The first pod that the update would delete, if the name of the update revision is no value of a label.
fn irreplaceable(known: &Known<'_>) -> Option<Wait> {
    let replicas = known.places.replicas.range(known.spec().partition_start()..).rev();
    let (_, pod) = replicas.into_iter().find(|(_, pod)| !known.is_updated(pod))?;
    let label = long_label(pod.metadata.name(), &known.revisions.update)?;
    Some(Wait::on(pod, Until::Renamed(label)))
}

/// The pod of the highest ordinal that is not updated, once all of higher ordinals are available.
fn one(known: &Known<'_>, deleted: &BTreeSet<Uid>) -> Result<Option<Deletion>, Wait> {
    let spec = known.spec();
    for ordinal in (spec.partition_start()..spec.ordinals().end).rev() {
        let Some(pod) = known.places.replicas.get(&ordinal) else { return Ok(None) };
        if is_going(pod, deleted) {
            return Err(Wait::on(pod, Until::Gone));
        }
        if !known.is_updated(pod) {
            return Ok(Some(outdated(known, pod)));
        }
        if !known.is_available(pod) {
            return Err(Wait::on(pod, Until::Available));
        }
    }
    Ok(None)
}

/// As many pods as may be unavailable, those of the highest ordinals first.
fn several(known: &Known<'_>, deleted: &BTreeSet<Uid>) -> Vec<Deletion> {
    let Unavailability { unavailable, max } = unavailability(known.spec(), &known.places, known.now);
    let (room, from) = (usize::try_from(max - unavailable).unwrap_or(0), known.spec().partition_start());
    let from_highest = known.places.replicas.range(from..).rev().map(|(_, pod)| *pod);
    let old = from_highest.filter(|pod| !is_going(pod, deleted) && !known.is_updated(pod));
    old.take(room).map(|pod| outdated(known, pod)).collect()
}

fn outdated(known: &Known<'_>, pod: &Pod) -> Deletion {
    Deletion::of(pod, Why::Outdated(known.revisions.update.clone()))
}

/// Whether a pod is being deleted, or this plan deletes it.
pub(super) fn is_going(pod: &Pod, deleted: &BTreeSet<Uid>) -> bool {
    pod.metadata.is_being_deleted() || deleted.contains(&pod.metadata.uid)
}
