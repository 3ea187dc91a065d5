//! Owners that are known not to exist: a thousand dependents of one absent owner cost one read.
//!
//! Left out: expiry. A uid never comes back, and what is oldest makes room.
//!
//! Upstream: `ReferenceCache`, `pkg/controller/garbagecollector/uid_cache.go`.

use std::collections::BTreeMap;

use crate::objects::Identity;

/// Upstream's size.
const SIZE: usize = 500;

/// The absent owners that were used last.
#[derive(Debug, Default)]
pub(super) struct AbsentOwners {
    last_use: BTreeMap<Identity, u64>,
    by_use: BTreeMap<u64, Identity>,
    uses: u64,
}

impl AbsentOwners {
    pub(super) fn add(&mut self, owner: Identity) {
        if !self.touch(&owner) {
            self.by_use.insert(self.uses, owner.clone());
            self.last_use.insert(owner, self.uses);
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

    fn touch(&mut self, owner: &Identity) -> bool {
        self.uses += 1;
        let Some(last) = self.last_use.get_mut(owner) else { return false };
        if let Some(owner) = self.by_use.remove(last) {
            self.by_use.insert(self.uses, owner);
        }
        *last = self.uses;
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
            absent.add(owner(&at.to_string()));
        }
        absent.add(owner("0"));
        absent.add(owner("new"));
        assert!(absent.contains(&owner("0")) && absent.contains(&owner("new")));
        assert!(!absent.contains(&owner("1")));
        assert_eq!((absent.last_use.len(), absent.by_use.len()), (SIZE, SIZE));
    }
}
