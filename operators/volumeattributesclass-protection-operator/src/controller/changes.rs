//! Which classes are synced when one of them, a volume or a claim changes: itself, and those that are not named any more.

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;

use crate::objects::{PROTECTION, PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass};
use crate::observe::Caches;

/// Upstream: `vacAddedUpdated`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.
pub fn class_changed(change: Change<'_, VolumeAttributesClass>) -> Vec<Effect> {
    PROTECTION.changed(change)
}

impl Caches {
    /// Upstream: `pvUpdated` and `pvDeleted`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.
    pub fn volume_changed(&self, change: Change<'_, PersistentVolume>) -> Vec<Effect> {
        match change {
            Change::Added(_) => Vec::new(),
            Change::Updated { old, new } => self.freed(old.class.as_slice(), new.class.as_slice()),
            Change::Deleted(old) => self.freed(old.class.as_slice(), &[]),
        }
    }

    /// Upstream: `pvcUpdated` and `pvcDeleted`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.
    pub fn claim_changed(&self, change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
        match change {
            Change::Added(_) => Vec::new(),
            Change::Updated { old, new } => self.freed(&old.classes, &new.classes),
            Change::Deleted(old) => self.freed(&old.classes, &[]),
        }
    }

    /// The classes that are being deleted and were named before.
    fn freed(&self, before: &[Text], now: &[Text]) -> Vec<Effect> {
        let freed = before.iter().filter(|name| !now.contains(name));
        let classes = freed.filter_map(|name| self.volume_attributes_classes.get(&Key::new("", name)));
        classes.filter_map(|class| PROTECTION.freed(&*class)).collect()
    }
}
