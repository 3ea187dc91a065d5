//! Which PersistentVolume is synced when one changes: itself, if it lacks the finalizer or waits to be let go.

use shared::following::cache::Change;
use shared::working::effect::Effect;

use crate::objects::{PROTECTION, PersistentVolume};

/// Every write of a volume that is being deleted leads to a sync, because its phase is not in the metadata.
///
/// Upstream: `pvAddedUpdated`, `pkg/controller/volume/pvprotection/pv_protection_controller.go`.
pub fn persistent_volume_changed(change: Change<'_, PersistentVolume>) -> Vec<Effect> {
    PROTECTION.changed(change)
}
