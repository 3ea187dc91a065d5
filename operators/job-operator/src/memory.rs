//! What is remembered of each Job between syncs: its released pods and its back-off. A restart loses it, as upstream.

pub mod backoff;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};

use backoff::BackoffRecord;

#[derive(Debug, Default)]
pub struct Memory {
    by_key: Mutex<BTreeMap<Key, Remembered>>,
}

#[derive(Debug, Default)]
struct Remembered {
    job: Uid,
    released: BTreeSet<Uid>,
    releasing: BTreeSet<Uid>,
    backoff: BackoffRecord,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Remembered>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Default>(&self, key: &Key, job: Uid, read: impl FnOnce(&Remembered) -> T) -> T {
        self.lock().get(key).filter(|remembered| remembered.job == job).map(read).unwrap_or_default()
    }

    /// Forgets a former Job of the same name.
    fn change(&self, key: &Key, job: Uid, change: impl FnOnce(&mut Remembered)) {
        let mut by_key = self.lock();
        let remembered = by_key.entry(key.clone()).or_default();
        if remembered.job != job {
            *remembered = Remembered { job, ..Remembered::default() };
        }
        change(remembered);
    }

    /// Pods whose finalizer was removed, unseen by the cache.
    ///
    /// Upstream: `getExpectedUIDs`, `pkg/controller/job/tracking_utils.go`.
    pub fn released(&self, key: &Key, job: Uid) -> BTreeSet<Uid> {
        self.read(key, job, |remembered| remembered.released.clone())
    }

    /// Expects these pods to lose their finalizers.
    ///
    /// Upstream: `expectFinalizersRemoved`.
    pub fn expect_released(&self, key: &Key, job: Uid, pods: impl IntoIterator<Item = Uid>) {
        self.change(key, job, |remembered| remembered.released.extend(pods));
    }

    /// Notes that a pod was seen without its finalizer, or that the removal failed.
    ///
    /// Upstream: `finalizerRemovalObserved`.
    pub fn release_observed(&self, key: &Key, pod: Uid) {
        if let Some(remembered) = self.lock().get_mut(key) {
            remembered.released.remove(&pod);
            remembered.releasing.remove(&pod);
        }
    }

    /// Notes the removal of a finalizer, which explains why its pod may vanish from the cache.
    pub fn begin_release(&self, key: &Key, job: Uid, pod: Uid) {
        self.change(key, job, |remembered| remembered.releasing.extend([pod]));
    }

    /// Whether this process removes or has removed the finalizer, unseen by the cache.
    pub fn is_releasing(&self, key: &Key, pod: Uid) -> bool {
        self.lock().get(key).is_some_and(|remembered| remembered.releasing.contains(&pod))
    }

    /// Notes that the removal failed, and returns whether the pod was not seen without its finalizer meanwhile.
    pub fn cancel_release(&self, key: &Key, pod: Uid) -> bool {
        self.lock().get_mut(key).is_some_and(|remembered| remembered.releasing.remove(&pod))
    }

    pub fn backoff(&self, key: &Key, job: Uid) -> BackoffRecord {
        self.read(key, job, |remembered| remembered.backoff)
    }

    pub fn set_backoff(&self, key: &Key, job: Uid, backoff: BackoffRecord) {
        self.change(key, job, |remembered| remembered.backoff = backoff);
    }

    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    pub fn start_over(&self) {
        self.lock().clear();
    }
}
