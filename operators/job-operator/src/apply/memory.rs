//! The memory of this process about a Job between two syncs. All of it may be lost: the next process starts without it,
//! as upstream's does.
//!
//! Left out: how many creations and deletions the cache has not shown yet, which is [`shared::runtime::expectations`]'.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};

use crate::plan::backoff::BackoffRecord;

/// The memory of each Job.
#[derive(Debug, Default)]
pub struct Memory {
    by_key: Mutex<BTreeMap<Key, Remembered>>,
}

#[derive(Debug, Default)]
struct Remembered {
    job: Uid,
    released: BTreeSet<Uid>,
    letting_go: BTreeSet<Uid>,
    backoff: BackoffRecord,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Remembered>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Default>(&self, key: &Key, job: Uid, read: impl FnOnce(&Remembered) -> T) -> T {
        self.lock().get(key).filter(|remembered| remembered.job == job).map(read).unwrap_or_default()
    }

    /// Of a Job of another uid and the same name, nothing is kept.
    fn change(&self, key: &Key, job: Uid, change: impl FnOnce(&mut Remembered)) {
        let mut by_key = self.lock();
        let remembered = by_key.entry(key.clone()).or_default();
        if remembered.job != job {
            *remembered = Remembered { job, ..Remembered::default() };
        }
        change(remembered);
    }

    /// The pods whose finalizer was taken away and that has not been seen.
    ///
    /// Upstream: `getExpectedUIDs`, `pkg/controller/job/tracking_utils.go`.
    pub fn released(&self, key: &Key, job: Uid) -> BTreeSet<Uid> {
        self.read(key, job, |remembered| remembered.released.clone())
    }

    /// The finalizers of these pods are about to go.
    ///
    /// Upstream: `expectFinalizersRemoved`.
    pub fn expect_released(&self, key: &Key, job: Uid, pods: impl IntoIterator<Item = Uid>) {
        self.change(key, job, |remembered| remembered.released.extend(pods));
    }

    /// A pod was seen without its finalizer, or could not be let go.
    ///
    /// Upstream: `finalizerRemovalObserved`.
    pub fn release_observed(&self, key: &Key, pod: Uid) {
        if let Some(remembered) = self.lock().get_mut(key) {
            remembered.released.remove(&pod);
            remembered.letting_go.remove(&pod);
        }
    }

    /// The finalizer of this pod is about to go. If the pod vanishes before it was seen without, that is why.
    pub fn lets_go(&self, key: &Key, job: Uid, pod: Uid) {
        self.change(key, job, |remembered| remembered.letting_go.extend([pod]));
    }

    /// Whether this process takes the finalizer of this pod, or has taken it, and that was not seen yet.
    pub fn is_letting_go(&self, key: &Key, pod: Uid) -> bool {
        self.lock().get(key).is_some_and(|remembered| remembered.letting_go.contains(&pod))
    }

    /// The finalizer of this pod could not be removed. Gives whether nothing was seen of the pod meanwhile.
    pub fn keeps(&self, key: &Key, pod: Uid) -> bool {
        self.lock().get_mut(key).is_some_and(|remembered| remembered.letting_go.remove(&pod))
    }

    /// The failures since the last success.
    pub fn backoff(&self, key: &Key, job: Uid) -> BackoffRecord {
        self.read(key, job, |remembered| remembered.backoff)
    }

    /// Those of now on.
    pub fn set_backoff(&self, key: &Key, job: Uid, backoff: BackoffRecord) {
        self.change(key, job, |remembered| remembered.backoff = backoff);
    }

    /// The Job is over, or gone.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Forgets everything: a restored etcd may have pods as they were before their finalizer went.
    pub fn start_over(&self) {
        self.lock().clear();
    }
}
