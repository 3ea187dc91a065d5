//! Which volumes this operator has bound, until the cache shows it, which claims volumes had before etcd was restored from
//! a backup, and which pods empty volumes.
//!
//! Without the first the binding is as safe, because each write names the version that it was decided on. A claim would
//! choose a volume that was given away a moment ago, and have to choose again. The second is lost with the process.
//! Without the third a volume is emptied again: anybody may have made a pod of that name, so only the pods that this
//! process has made show that a volume is empty.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Meta, ResourceVersion, Uid};
use shared::following::cache::Change;

use crate::objects::recycler::PodId;
use crate::objects::volume::PersistentVolume;

#[derive(Debug, Default)]
pub struct Memory {
    bound: Mutex<HashMap<Key, (Uid, ResourceVersion)>>,
    before_restore: Mutex<HashMap<Key, Key>>,
    recyclers: Mutex<HashMap<Key, Recycling>>,
}

/// A pod that this process has made to empty a volume.
#[derive(Debug)]
struct Recycling {
    pod: PodId,
    /// The events about it that the volume was told of.
    relayed: HashSet<Uid>,
}

impl Memory {
    fn bound(&self) -> MutexGuard<'_, HashMap<Key, (Uid, ResourceVersion)>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn remember(&self, volume: &Key, uid: Uid, version: ResourceVersion) {
        self.bound().insert(volume.clone(), (uid, version));
    }

    /// Whether this state of a volume is older than its binding.
    pub fn has_bound_since<A>(&self, volume: &Meta<A>) -> bool {
        let bound = self.bound();
        bound.get(&volume.key).is_some_and(|(uid, at)| *uid == volume.uid && *at > volume.resource_version)
    }

    /// Forgets a binding that this state of the volume shows, or that was another volume's.
    pub fn seen<A>(&self, volume: &Meta<A>) {
        let mut bound = self.bound();
        if bound.get(&volume.key).is_some_and(|(uid, at)| *uid != volume.uid || *at <= volume.resource_version) {
            bound.remove(&volume.key);
        }
    }

    pub fn forget(&self, volume: &Key) {
        self.bound().remove(volume);
    }

    /// Forgets what a restore of etcd has undone.
    pub fn forget_all(&self) {
        self.bound().clear();
        self.recyclers().clear();
    }

    fn before_restore(&self) -> MutexGuard<'_, HashMap<Key, Key>> {
        self.before_restore.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the claim of a volume whose binding a restore of etcd has undone, until the volume has a claim again.
    pub fn note_restore(&self, change: Change<'_, PersistentVolume>) {
        let key = &change.latest().metadata.key;
        match change {
            Change::Updated { old, new } if new.spec.claim_ref.is_none() => {
                // Only a restored etcd has an older state than the one that is known.
                if new.metadata.resource_version < old.metadata.resource_version
                    && let Some(reference) = &old.spec.claim_ref
                {
                    self.before_restore().insert(key.clone(), reference.key.clone());
                }
            }
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => drop(self.before_restore().remove(key)),
        }
    }

    /// The claim that a free volume had before etcd was restored.
    pub fn claim_before_restore(&self, volume: &Key) -> Option<Key> {
        self.before_restore().get(volume).cloned()
    }
}

impl Memory {
    fn recyclers(&self) -> MutexGuard<'_, HashMap<Key, Recycling>> {
        self.recyclers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn remember_recycler(&self, volume: &Key, pod: PodId) {
        self.recyclers().insert(volume.clone(), Recycling { pod, relayed: HashSet::new() });
    }

    /// The pod that empties this volume.
    pub fn recycler(&self, volume: &Key) -> Option<PodId> {
        self.recyclers().get(volume).map(|recycling| recycling.pod.clone())
    }

    pub fn forget_recycler(&self, volume: &Key) {
        self.recyclers().remove(volume);
    }

    /// Whether the volume was told of this event about its pod.
    pub fn has_relayed(&self, volume: &Key, event: Uid) -> bool {
        self.recyclers().get(volume).is_some_and(|recycling| recycling.relayed.contains(&event))
    }

    pub fn relayed(&self, volume: &Key, event: Uid) {
        if let Some(recycling) = self.recyclers().get_mut(volume) {
            recycling.relayed.insert(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::testing::object;

    use super::*;
    use crate::objects::volume::PersistentVolume;

    #[test]
    fn a_binding_is_remembered_until_the_cache_shows_it() {
        let at = |version: &str, uid: &str| {
            let volume = object("v1", "PersistentVolume", "a").namespace("").uid_of(uid);
            volume.set(&["metadata", "resourceVersion"], version).build::<PersistentVolume>()
        };
        let memory = Memory::default();
        let bound = &at("5", "a").metadata;
        memory.remember(&bound.key, bound.uid, bound.resource_version);
        assert!(memory.has_bound_since(&at("4", "a").metadata));
        assert!(!memory.has_bound_since(&at("5", "a").metadata) && !memory.has_bound_since(&at("4", "b").metadata));
        memory.seen(&at("4", "a").metadata);
        assert!(memory.has_bound_since(&at("4", "a").metadata), "that state is older");
        memory.seen(&at("5", "a").metadata);
        assert!(!memory.has_bound_since(&at("4", "a").metadata));
        for forget in [|memory: &Memory, key: &Key| memory.forget(key), |memory: &Memory, _: &Key| memory.forget_all()]
        {
            memory.remember(&bound.key, bound.uid, bound.resource_version);
            forget(&memory, &bound.key);
            assert!(!memory.has_bound_since(&at("4", "a").metadata));
        }
    }
}
