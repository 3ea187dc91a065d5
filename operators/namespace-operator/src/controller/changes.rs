//! A namespace that is being deleted is synced a grace period after its last change.

use std::time::Duration;

use shared::following::cache::Change;
use shared::working::effect::Effect;

use crate::objects::Namespace;

/// Gives other parts of the control plane time to see the deletion, so that less is created after the first round.
///
/// Upstream: `namespaceDeletionGracePeriod`, `pkg/controller/namespace/namespace_controller.go`.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

pub(super) fn namespace_changed(change: Change<'_, Namespace>) -> Vec<Effect> {
    let purpose = "the grace period after its last change";
    let deleted = change.existing().filter(|namespace| namespace.metadata.is_being_deleted());
    let key = deleted.map(|namespace| namespace.metadata.key.clone());
    key.map(|key| Effect::EnqueueAfter(key, GRACE_PERIOD, purpose)).into_iter().collect()
}
