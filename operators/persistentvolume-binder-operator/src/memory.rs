//! Which volumes this operator has bound, until the cache shows it.
//!
//! Without it the binding is as safe, because each write names the version that it was decided on. A claim would choose
//! a volume that was given away a moment ago, and have to choose again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Meta, ResourceVersion, Uid};

#[derive(Debug, Default)]
pub struct Memory {
    bound: Mutex<HashMap<Key, (Uid, ResourceVersion)>>,
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

    pub fn forget_all(&self) {
        self.bound().clear();
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
