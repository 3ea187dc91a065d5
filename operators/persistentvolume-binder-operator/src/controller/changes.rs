//! Which changes lead to a sync of a claim or of a volume.
//!
//! Upstream syncs all of them at each change and every 15 seconds. Here a change also syncs what it may help.

use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::StorageClass;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::recycler::{PodEvent, RecyclerPod};
use crate::objects::volume::PersistentVolume;
use crate::observe::Caches;

fn enqueue(keys: impl IntoIterator<Item = Key>) -> Vec<Effect> {
    keys.into_iter().map(|key| Effect::Enqueue(key, Cause::Event)).collect()
}

/// Upstream: `enqueueWork` of claims, `pv_controller_base.go`.
pub fn claim_changed(change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
    let key = change.latest().metadata.key.clone();
    match change {
        Change::Deleted(claim) => vec![Effect::Forget(key, claim.metadata.uid)],
        Change::Added(_) => vec![Effect::Enqueue(key, Cause::Edit)],
        Change::Updated { old, new }
            if old.spec != new.spec || old.metadata.annotations != new.metadata.annotations =>
        {
            vec![Effect::Enqueue(key, Cause::Edit)]
        }
        Change::Updated { old, new } if old.status != new.status => enqueue([key]),
        Change::Updated { .. } => Vec::new(),
    }
}

fn is_same(old: &PersistentVolume, new: &PersistentVolume) -> bool {
    let (before, after) = (&old.metadata, &new.metadata);
    old.spec == new.spec
        && old.phase() == new.phase()
        && before.annotations == after.annotations
        && before.finalizers == after.finalizers
        && before.labels == after.labels
        && before.is_being_deleted() == after.is_being_deleted()
}

impl Caches {
    /// The pod that empties a volume ends with it.
    ///
    /// Upstream: `enqueueWork` of volumes.
    pub fn volume_changed(&self, change: Change<'_, PersistentVolume>) -> Vec<Effect> {
        let key = change.latest().metadata.key.clone();
        match change {
            Change::Deleted(volume) => {
                let mut effects = vec![Effect::Forget(key.clone(), volume.metadata.uid)];
                if self.memory.recycler(&key).is_some() {
                    effects.push(Effect::Enqueue(key, Cause::Event));
                }
                effects
            }
            Change::Updated { old, new } if is_same(old, new) => Vec::new(),
            Change::Added(_) | Change::Updated { .. } => enqueue([key]),
        }
    }

    /// A volume waits for the end of its own pod. Where another one of the name is in the way, the sync period ends the
    /// wait, as upstream's: a pod that fails at once would otherwise be made again at once.
    pub fn recycler_changed(&self, change: Change<'_, RecyclerPod>) -> Vec<Effect> {
        let pod = change.latest();
        let has_ended = change.existing().is_none_or(|pod| pod.status.phase.is_terminal());
        let volume = pod.volume().filter(|volume| has_ended && self.is_recycled_by(volume, pod.metadata.uid));
        enqueue(volume)
    }

    pub fn pod_event_came(&self, change: Change<'_, PodEvent>) -> Vec<Effect> {
        let Change::Added(event) = change else { return Vec::new() };
        let is_of_own = |volume: &Key| event.pod().is_some_and(|pod| self.is_recycled_by(volume, pod));
        enqueue(event.volume().filter(is_of_own))
    }

    fn is_recycled_by(&self, volume: &Key, pod: Uid) -> bool {
        self.memory.recycler(volume).is_some_and(|own| own.uid == pod)
    }

    /// The volumes that a claim names or that name it have to follow it.
    ///
    /// Upstream: `deleteClaim`.
    pub fn claim_of_volumes_changed(&self, change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
        if matches!(change, Change::Updated { old, new } if old.spec == new.spec) {
            return Vec::new();
        }
        let claim = change.latest();
        let naming = self.volumes_of_claim(&claim.metadata.key);
        let named = Some(&claim.spec.volume_name).filter(|name| !name.is_empty()).map(|name| Key::new("", name));
        let mut keys: Vec<Key> = naming.iter().map(|volume| volume.metadata.key.clone()).chain(named).collect();
        keys.sort_unstable();
        keys.dedup();
        enqueue(keys)
    }

    /// The claims that name a volume or that it names have to follow it, and one that has become free may be what others
    /// wait for.
    ///
    /// Upstream: `deleteVolume`, and the resync.
    pub fn volume_of_claims_changed(&self, change: Change<'_, PersistentVolume>) -> Vec<Effect> {
        let old = match change {
            Change::Updated { old, new } if is_same(old, new) => return Vec::new(),
            Change::Updated { old, new: _ } => Some(old),
            Change::Added(_) | Change::Deleted(_) => None,
        };
        let volume = change.latest();
        let referred = old.into_iter().chain([volume]).filter_map(|volume| volume.spec.claim_ref.as_ref());
        let mut keys: Vec<Key> = referred.map(|reference| reference.key.clone()).collect();
        keys.extend(self.claims_of_volume(&volume.metadata.key).iter().map(|claim| claim.metadata.key.clone()));
        if let Some(volume) = change.existing()
            && volume.spec.claim_ref.is_none()
            && *volume.phase() == "Available"
        {
            let waiting = self.waiting(volume.class());
            let may_fit = waiting.iter().filter(|claim| {
                volume.capacity() >= claim.requested() && volume.spec.access_modes.contain(&claim.spec.access_modes)
            });
            keys.extend(may_fit.map(|claim| claim.metadata.key.clone()));
        }
        keys.sort_unstable();
        keys.dedup();
        enqueue(keys)
    }

    /// The claims of a class wait for it, and those without one for a default class.
    pub fn class_changed(&self, change: Change<'_, StorageClass>) -> Vec<Effect> {
        let Some(class) = change.existing() else { return Vec::new() };
        let mut waiting = self.waiting(&Text::new(class.metadata.name()));
        if class.is_default() {
            waiting.extend(self.waiting(&Text::default()).into_iter().filter(|claim| !claim.has_class()));
        }
        enqueue(waiting.iter().map(|claim| claim.metadata.key.clone()))
    }

    pub(crate) fn note_volume(&self, change: Change<'_, PersistentVolume>) {
        let volume = &change.latest().metadata;
        match change {
            Change::Added(_) | Change::Updated { .. } => self.memory.seen(volume),
            Change::Deleted(_) => self.memory.forget(&volume.key),
        }
    }
}
