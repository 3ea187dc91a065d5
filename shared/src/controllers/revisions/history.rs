//! The history of an owner: its revisions in order, the one of its template of now, and those that are too many.
//!
//! Left out: the claim, which is [`crate::api::owner::claim`]'s, and the writes, which are [`super::apply`]'s.

use std::sync::Arc;

use super::ControllerRevision;
use super::data::Fingerprint;

/// Brings revisions into their order: by number, and those of one number by age and name.
///
/// Upstream: `SortControllerRevisions`, `pkg/controller/history/controller_history.go`.
pub fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by(|a, b| {
        let place = |revision: &ControllerRevision| (revision.revision, revision.metadata.creation);
        place(a).cmp(&place(b)).then_with(|| a.metadata.name().cmp(b.metadata.name()))
    });
}

/// The number of the revision that comes after these, which are in order.
///
/// Upstream: `nextRevision`, `pkg/controller/statefulset/stateful_set_utils.go`.
pub fn next_number(sorted: &[Arc<ControllerRevision>]) -> i64 {
    sorted.last().map_or(1, |last| last.revision.saturating_add(1))
}

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// The last revision has these data.
    Last(Arc<ControllerRevision>),
    /// An earlier one has them: the owner has gone back to it. Of several the last one counts.
    Earlier(Arc<ControllerRevision>),
    /// None has them, but the last one describes the same pods in other bytes.
    LastInOtherBytes(Arc<ControllerRevision>),
    None,
}

/// Looks for a template in a history that is in order.
///
/// Upstream: `FindEqualRevisions`, `controller_history.go`, and the first half of `getStatefulSetRevisions`,
/// `pkg/controller/statefulset/stateful_set_control.go`.
pub fn find(sorted: &[Arc<ControllerRevision>], wanted: Fingerprint) -> Place {
    let Some(last) = sorted.last() else { return Place::None };
    match sorted.iter().rfind(|revision| revision.is_of(wanted)) {
        Some(_) if last.is_of(wanted) => Place::Last(Arc::clone(last)),
        Some(earlier) => Place::Earlier(Arc::clone(earlier)),
        None if last.data.meaning == wanted.meaning => Place::LastInOtherBytes(Arc::clone(last)),
        None => Place::None,
    }
}

/// The revisions to delete so that no more than `limit` are left, as far as that goes without those that are in use;
/// the oldest go first. A limit below 0 keeps all.
///
/// Upstream: `cleanupHistory`, `pkg/controller/daemon/update.go`.
pub fn surplus(
    sorted: &[Arc<ControllerRevision>],
    limit: i32,
    is_in_use: impl Fn(&ControllerRevision) -> bool,
) -> Vec<Arc<ControllerRevision>> {
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    let idle = sorted.iter().filter(|revision| !is_in_use(revision));
    idle.take(sorted.len().saturating_sub(limit)).cloned().collect()
}

/// The revisions to delete so that no more than `limit` are left of those that are not in use; the oldest go first. A
/// limit below 0 keeps all.
///
/// Upstream: `truncateHistory`, `stateful_set_control.go`.
pub fn beyond_limit(
    sorted: &[Arc<ControllerRevision>],
    limit: i32,
    is_in_use: impl Fn(&ControllerRevision) -> bool,
) -> Vec<Arc<ControllerRevision>> {
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    if sorted.len() <= limit {
        return Vec::new();
    }
    let idle: Vec<&Arc<ControllerRevision>> = sorted.iter().filter(|revision| !is_in_use(revision)).collect();
    let surplus = idle.len().saturating_sub(limit);
    idle.into_iter().take(surplus).cloned().collect()
}
