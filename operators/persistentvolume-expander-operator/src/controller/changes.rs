//! Which changes of a claim lead to a sync of it.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::PersistentVolumeClaim;

/// A bound claim is synced if it is to grow, and has not been seen before or has just been given another size.
///
/// Upstream: `UpdateFunc` in `NewExpandController`, `pkg/controller/volume/expand/expand_controller.go`.
pub fn claim_changed(change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
    let claim = match change {
        Change::Added(claim) => Some(claim),
        Change::Updated { old, new } if new.requested() > old.requested() || new.provided() > old.provided() => {
            Some(new)
        }
        Change::Updated { .. } | Change::Deleted(_) => None,
    };
    let due = claim.filter(|claim| claim.is_bound() && claim.is_to_grow());
    due.map(|claim| Effect::Enqueue(claim.metadata.key.clone(), Cause::Event)).into_iter().collect()
}
