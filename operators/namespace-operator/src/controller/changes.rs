//! What a change of a namespace means.
//!
//! Left out: namespaces that nobody deletes, which are never synced.

use std::time::Duration;

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;

use crate::objects::Namespace;

/// Other parts of the control plane learn of the deletion meanwhile, so that less is created after the first round.
///
/// Upstream: `namespaceDeletionGracePeriod`, `pkg/controller/namespace/namespace_controller.go`.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

pub(super) fn namespace_changed(change: Change<'_, Namespace>) -> Vec<Effect> {
    let purpose = "the grace period after its last change";
    let deleted = change.existing().filter(|namespace| namespace.metadata.is_being_deleted());
    let key = deleted.map(|namespace| namespace.metadata.key.clone());
    key.map(|key| Effect::EnqueueAfter(key, GRACE_PERIOD, purpose)).into_iter().collect()
}
