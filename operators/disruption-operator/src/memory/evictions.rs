//! The version of the budget in which each eviction first appeared. Once the pods' cache is as new as this version, an
//! evicted pod missing from it is gone.
//!
//! The newest version of the budget would also be safe, but the pods' cache reaches it late, because most writes of a
//! budget change no pod. After a restart only the newest version is known.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, ResourceVersion};
use shared::api::time::Time;

use crate::objects::PodDisruptionBudget;

#[derive(Default)]
pub struct Evictions(Mutex<HashMap<Key, OfBudget>>);

#[derive(Default)]
struct OfBudget {
    by_pod: BTreeMap<Box<str>, Noted>,
    /// Up to this version the cache of pods is known to be new enough, or is waited for.
    awaited: ResourceVersion,
}

#[derive(Clone, Copy)]
struct Noted {
    began: Time,
    version: ResourceVersion,
}

impl Evictions {
    pub fn note(&self, budget: &PodDisruptionBudget) {
        let mut evictions = self.evictions();
        let key = &budget.metadata.key;
        let OfBudget { by_pod: known, awaited } = evictions.remove(key).unwrap_or_default();
        let version = budget.metadata.resource_version;
        let noted = budget.status.disrupted_pods.iter().map(|(name, began)| {
            let before = known.get(name).filter(|noted| noted.began == *began).copied();
            (name.clone(), before.unwrap_or(Noted { began: *began, version }))
        });
        let by_pod: BTreeMap<_, _> = noted.collect();
        if !by_pod.is_empty() {
            evictions.insert(key.clone(), OfBudget { by_pod, awaited });
        }
    }

    pub fn forget(&self, budget: &Key) {
        self.evictions().remove(budget);
    }

    pub fn start_over(&self) {
        self.evictions().clear();
    }

    /// The version by which the evictions of all these pods had appeared.
    pub fn version(&self, budget: &PodDisruptionBudget, pods: &[&str]) -> ResourceVersion {
        let evictions = self.evictions();
        let known = evictions.get(&budget.metadata.key);
        let version = |pod: &&str| known.and_then(|known| known.by_pod.get(*pod)).map(|noted| noted.version);
        let newest = budget.metadata.resource_version;
        pods.iter().map(|pod| version(pod).unwrap_or(newest)).max().unwrap_or(newest)
    }

    /// Whether a wait for this version begins. Each is waited for once: pods in another etcd may never reach it, and then
    /// a list that began after the eviction ends the wait.
    pub fn begins_wait(&self, budget: &Key, version: ResourceVersion) -> bool {
        let mut evictions = self.evictions();
        let OfBudget { awaited, .. } = evictions.entry(budget.clone()).or_default();
        let is_new = version > *awaited;
        *awaited = version.max(*awaited);
        is_new
    }

    fn evictions(&self) -> MutexGuard<'_, HashMap<Key, OfBudget>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
