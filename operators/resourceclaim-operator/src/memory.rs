//! Deletions of pods and PodGroups, remembered until the claims that they used are synced.
//!
//! Most users of a claim that a sync does not find are such, and need no live read. Another process reads each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};

/// The uids of deleted users, by claim.
///
/// A deletion counts for one sync of the claim. If that fails, the user is read live: a uid is never reused, but etcd
/// may have been restored meanwhile.
///
/// Upstream: `uidCache`, `pkg/controller/resourceclaim/uid_cache.go`.
#[derive(Default)]
pub struct DeletedUsers(Mutex<BTreeMap<Key, BTreeSet<Uid>>>);

impl DeletedUsers {
    fn claims(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeSet<Uid>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the deletion for claims that are about to be synced.
    pub fn note(&self, user: Uid, claims: impl IntoIterator<Item = Key>) {
        let mut known = self.claims();
        for claim in claims {
            known.entry(claim).or_default().insert(user);
        }
    }

    pub(crate) fn contains(&self, claim: &Key, user: Uid) -> bool {
        self.claims().get(claim).is_some_and(|users| users.contains(&user))
    }

    /// Forgets the deletions that the sync of a claim has observed.
    pub(crate) fn clear(&self, claim: &Key) {
        self.claims().remove(claim);
    }

    /// Forgets all: after a restore of etcd a deleted object may exist.
    pub(crate) fn start_over(&self) {
        self.claims().clear();
    }
}

#[cfg(test)]
mod tests {
    use shared::testing::uid;

    use super::*;

    #[test]
    fn a_deletion_is_remembered_for_the_claims_that_it_frees() {
        let (gpu, nic) = (Key::new("default", "gpu"), Key::new("default", "nic"));
        let deleted = DeletedUsers::default();
        deleted.note(uid("web"), [gpu.clone(), nic.clone()]);
        deleted.note(uid("other"), [gpu.clone()]);
        let known = |claim| (deleted.contains(claim, uid("web")), deleted.contains(claim, uid("other")));
        assert_eq!((known(&gpu), known(&nic)), ((true, true), (true, false)));
        deleted.clear(&gpu);
        assert_eq!((known(&gpu), known(&nic)), ((false, false), (true, false)));
        deleted.start_over();
        assert_eq!(known(&nic), (false, false));
    }
}
