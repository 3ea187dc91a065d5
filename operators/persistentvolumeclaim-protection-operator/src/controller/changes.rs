//! Which claims are synced when one of them or a pod changes: itself, and those that a pod does not use any more.

use shared::following::cache::Change;
use shared::working::effect::Effect;

use crate::objects::pod::Pod;
use crate::objects::{PROTECTION, PersistentVolumeClaim};
use crate::observe::Caches;

/// Upstream: `pvcAddedUpdated`, `pkg/controller/volume/pvcprotection/pvc_protection_controller.go`.
pub fn claim_changed(change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
    PROTECTION.changed(change)
}

impl Caches {
    /// A new pod frees no claim. One whose claim is not being deleted yet frees it at that claim's own event.
    ///
    /// Upstream: `podAddedDeletedUpdated`, `pkg/controller/volume/pvcprotection/pvc_protection_controller.go`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        match change {
            Change::Added(_) => Vec::new(),
            Change::Updated { old, new } => self.freed(old, |claim| old.uses(claim) && !new.uses(claim)),
            // Its last state may show that it is shut down, which no state before it did.
            Change::Deleted(last) => self.freed(last, |_| true),
        }
    }

    /// The claims of the pod's volumes that are being deleted and are freed.
    fn freed(&self, pod: &Pod, is_freed: impl Fn(&PersistentVolumeClaim) -> bool) -> Vec<Effect> {
        let claims = pod.claim_keys().filter_map(|key| self.persistent_volume_claims.get(&key));
        claims.filter(|claim| is_freed(claim)).filter_map(|claim| PROTECTION.freed(&*claim)).collect()
    }
}
