//! Which pods are synced when one of them or a claim changes.

use std::collections::BTreeSet;

use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::PersistentVolumeClaim;
use crate::objects::pod::Pod;
use crate::observe::Caches;

/// A pod's volumes never change, so only a new pod needs a sync: one of another uid may have replaced one of its name.
///
/// Upstream: `enqueuePod`, `pkg/controller/volume/ephemeral/controller.go`.
pub fn pod_changed(change: Change<'_, Pod>) -> Vec<Effect> {
    let new = match change {
        Change::Added(pod) => Some(pod),
        Change::Updated { old, new } if old.metadata.uid != new.metadata.uid => Some(new),
        Change::Updated { .. } | Change::Deleted(_) => None,
    };
    new.filter(|pod| needs_claims(pod)).map(|pod| enqueue(pod.metadata.key.clone())).into_iter().collect()
}

impl Caches {
    /// Wakes the pods that wait for a claim of this name, and the pod that the claim was made for: it may have started,
    /// and then the cache does not have it.
    ///
    /// Upstream: `onPVCDelete`, `pkg/controller/volume/ephemeral/controller.go`.
    pub fn claim_changed(&self, change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
        let Change::Deleted(claim) = change else { return Vec::new() };
        let metadata = &claim.metadata;
        let waiting = self.pods_for(&metadata.key).into_iter().filter(|pod| needs_claims(pod));
        let controller = metadata.controller.iter().filter(|owner| *owner.kind == *PODS.kind);
        let owner = controller.map(|owner| Key::new(metadata.namespace(), &owner.name));
        let keys: BTreeSet<Key> = waiting.map(|pod| pod.metadata.key.clone()).chain(owner).collect();
        keys.into_iter().map(enqueue).collect()
    }
}

fn needs_claims(pod: &Pod) -> bool {
    !pod.metadata.is_being_deleted() && !pod.ephemeral_volumes.is_empty()
}

fn enqueue(pod: Key) -> Effect {
    Effect::Enqueue(pod, Cause::Event)
}
