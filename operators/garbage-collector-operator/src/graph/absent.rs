//! Owners that are known not to exist: a thousand dependents of one absent owner cost one read.
//!
//! Entries never expire, because a uid is never used again.
//!
//! Upstream: `ReferenceCache`, `pkg/controller/garbagecollector/uid_cache.go`.

use std::collections::BTreeMap;

use crate::objects::Identity;

/// Upstream's size.
const SIZE: usize = 500;

/// The least recently used owner is dropped first.
#[derive(Debug, Default)]
pub(super) struct AbsentOwners {
    last_use: BTreeMap<Identity, Use>,
    by_use: BTreeMap<u64, Identity>,
    uses: u64,
}

/// The last use of an absent owner.
#[derive(Debug)]
struct Use {
    at: u64,
    was_seen: bool,
}

impl AbsentOwners {
    pub(super) fn add(&mut self, owner: Identity, was_seen: bool) {
        if !self.touch(&owner, was_seen) {
            self.by_use.insert(self.uses, owner.clone());
            self.last_use.insert(owner, Use { at: self.uses, was_seen });
        }
        if self.last_use.len() > SIZE
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.last_use.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, owner: &Identity) -> bool {
        self.last_use.contains_key(owner)
    }

    pub(super) fn was_seen(&self, owner: &Identity) -> bool {
        self.last_use.get(owner).is_some_and(|last| last.was_seen)
    }

    fn touch(&mut self, owner: &Identity, was_seen: bool) -> bool {
        self.uses += 1;
        let Some(last) = self.last_use.get_mut(owner) else { return false };
        if let Some(owner) = self.by_use.remove(&last.at) {
            self.by_use.insert(self.uses, owner);
        }
        last.at = self.uses;
        last.was_seen |= was_seen;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shared::api::intern::Text;
    use shared::api::object::Uid;

    use super::*;
    use crate::objects::{Coordinates, ObjectKind};

    fn owner(name: &str) -> Identity {
        let object = Coordinates { kind: ObjectKind::shared("v1", "Pod"), name: Arc::from(name), uid: Uid::parse("u") };
        Identity { object, namespace: Text::default() }
    }

    #[test]
    fn the_owner_that_was_not_used_for_longest_makes_room() {
        let mut absent = AbsentOwners::default();
        for at in 0..SIZE {
            absent.add(owner(&at.to_string()), at == 0);
        }
        absent.add(owner("0"), false);
        absent.add(owner("new"), false);
        assert!(absent.contains(&owner("0")) && absent.contains(&owner("new")));
        assert!(absent.was_seen(&owner("0")) && !absent.was_seen(&owner("new")));
        assert!(!absent.contains(&owner("1")));
        assert_eq!((absent.last_use.len(), absent.by_use.len()), (SIZE, SIZE));
    }
}
