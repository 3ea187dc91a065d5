//! Which pods are synced when one of them, a claim, a volume or a driver changes.

use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::pod::Pod;
use crate::objects::volume::PersistentVolume;
use crate::objects::{CsiDriver, PersistentVolumeClaim};
use crate::observe::Caches;

/// A pod's volumes never change, but for those that an ephemeral container mounts. One that has ended leaves the
/// cache.
///
/// Upstream: `updatePod`, `pkg/controller/volume/selinuxwarning/selinux_warning_controller.go`.
pub fn pod_changed(change: Change<'_, Pod>) -> Vec<Effect> {
    let pod = change.latest();
    let matters = match change {
        Change::Added(pod) | Change::Deleted(pod) => !pod.volumes.is_empty(),
        Change::Updated { old, new } => old.volumes != new.volumes,
    };
    matters.then(|| enqueue(pod.metadata.key.clone())).into_iter().collect()
}

impl Caches {
    /// Upstream: `addPVC` and `updatePVC`.
    pub fn claim_changed(&self, change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
        let claim = match change {
            Change::Added(claim) => claim,
            Change::Updated { old, new } if old.volume != new.volume => new,
            Change::Updated { .. } | Change::Deleted(_) => return Vec::new(),
        };
        claim.volume.as_ref().map(|_| self.enqueue_pods_of(&claim.metadata.key)).unwrap_or_default()
    }

    /// Upstream: `addPV` and `updatePV`.
    pub fn volume_changed(&self, change: Change<'_, PersistentVolume>) -> Vec<Effect> {
        let volume = match change {
            Change::Added(volume) => volume,
            Change::Updated { old, new } if old.claim != new.claim => new,
            Change::Updated { .. } | Change::Deleted(_) => return Vec::new(),
        };
        volume.claim.as_ref().map(|(claim, _)| self.enqueue_pods_of(claim)).unwrap_or_default()
    }

    /// Upstream: `addCSIDriver`, `updateCSIDriver` and `deleteCSIDriver`.
    pub fn driver_changed(&self, change: Change<'_, CsiDriver>) -> Vec<Effect> {
        let matters = match change {
            Change::Added(driver) | Change::Deleted(driver) => driver.mounts_with_label(),
            Change::Updated { old, new } => old.mounts_with_label() != new.mounts_with_label(),
        };
        if !matters {
            return Vec::new();
        }
        let pods = self.remembered.pods_of(change.latest().metadata.name());
        pods.into_iter().map(enqueue).collect()
    }

    fn enqueue_pods_of(&self, claim: &Key) -> Vec<Effect> {
        self.pods_of(claim).into_iter().map(|pod| enqueue(pod.metadata.key.clone())).collect()
    }
}

fn enqueue(pod: Key) -> Effect {
    Effect::Enqueue(pod, Cause::Event)
}
