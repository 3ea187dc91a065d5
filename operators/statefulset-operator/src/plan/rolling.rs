//! Pods of an earlier revision go, so that others are made from the template of now.
//!
//! Left out: the strategy `OnDelete`, for which nothing is planned here.
//!
//! Upstream: the end of `updateStatefulSet` and `updateStatefulSetAfterInvariantEstablished`,
//! `pkg/controller/statefulset/stateful_set_control.go`.

use jiff::Timestamp;
use shared::api::int_or_percent::Rounding;

use super::reason::{Until, Why};
use super::{Deletion, Draft, Places, is_available};
use crate::objects::{StatefulSetSpec, UpdateType};

/// How many pods are unavailable, and how many may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// Pods that are missing, not available, or being deleted.
    pub unavailable: i64,
    /// The limit of a rolling update.
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

/// Counts the pods that are unavailable.
pub(super) fn unavailability(spec: &StatefulSetSpec, places: &Places<'_>, now: Timestamp) -> Unavailability {
    let available = places.replicas.values().filter(|pod| is_available(pod, spec, now)).count();
    let unavailable = i64::from(spec.replicas.max(0)) - i64::try_from(available).unwrap_or(i64::MAX);
    Unavailability { unavailable, max: max_unavailable(spec) }
}

/// Plans which pods go for the sake of the update.
pub(super) fn plan_update(draft: &mut Draft<'_>) {
    if draft.spec().update_strategy.type_ == UpdateType::OnDelete {
        return;
    }
    if draft.gates.max_unavailable { plan_several(draft) } else { plan_one(draft) }
}

/// The pod of the highest ordinal that is not updated goes, once all of higher ordinals are available.
fn plan_one(draft: &mut Draft<'_>) {
    let (spec, places) = (draft.spec(), draft.places);
    for ordinal in (spec.partition_start()..spec.ordinals().end).rev() {
        let Some(pod) = places.replicas.get(&ordinal) else { return };
        let is_going = pod.metadata.is_being_deleted() || draft.is_deleted(pod);
        if !is_going && pod.revision() != &*draft.revisions.update {
            let why = Why::Outdated(draft.revisions.update.clone());
            return draft.outdated.push(Deletion::of(pod, why));
        }
        if is_going || !is_available(pod, spec, draft.now) {
            return draft.wait(pod, if is_going { Until::Gone } else { Until::Available });
        }
    }
}

/// As many pods go as may be unavailable, those of the highest ordinals first.
fn plan_several(draft: &mut Draft<'_>) {
    let (spec, places) = (draft.spec(), draft.places);
    let Unavailability { unavailable, max } = unavailability(spec, places, draft.now);
    let room = usize::try_from(max - unavailable).unwrap_or(0);
    let from = spec.partition_start();
    for (_, pod) in places.replicas.iter().rev().filter(|(ordinal, _)| **ordinal >= from) {
        if draft.outdated.len() >= room {
            return;
        }
        let is_going = pod.metadata.is_being_deleted() || draft.is_deleted(pod);
        if !is_going && pod.revision() != &*draft.revisions.update {
            let why = Why::Outdated(draft.revisions.update.clone());
            draft.outdated.push(Deletion::of(pod, why));
        }
    }
}
