//! Since which version of a budget each of its evictions is noted there: the pods must have seen that version before an
//! eviction of a pod that is not there counts as done.
//!
//! The newest version would do too, but the pods often reach that late, for most writes of a budget change no pod.
//! After a start only the newest is known. Left out: anything that decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, ResourceVersion};
use shared::api::time::Time;
use shared::runtime::cache::Change;

use crate::objects::PodDisruptionBudget;

/// The evictions of each budget that has some, by the name of the pod.
#[derive(Default)]
pub struct Evictions(Mutex<HashMap<Key, BTreeMap<Box<str>, Noted>>>);

/// One eviction.
#[derive(Clone, Copy)]
struct Noted {
    began: Time,
    version: ResourceVersion,
}

impl Evictions {
    /// Takes in which evictions a budget has.
    pub fn note(&self, change: &Change<'_, PodDisruptionBudget>) {
        let mut evictions = self.evictions();
        let key = &change.latest().metadata.key;
        let known = evictions.remove(key).unwrap_or_default();
        let Some(budget) = change.existing().filter(|budget| !budget.status.disrupted_pods.is_empty()) else { return };
        let version = budget.metadata.resource_version;
        let noted = budget.status.disrupted_pods.iter().map(|(name, began)| {
            let before = known.get(name).filter(|noted| noted.began == *began).copied();
            (name.clone(), before.unwrap_or(Noted { began: *began, version }))
        });
        evictions.insert(key.clone(), noted.collect());
    }

    /// Since which version all of these are noted.
    pub fn version(&self, budget: &PodDisruptionBudget, pods: &[&str]) -> ResourceVersion {
        let evictions = self.evictions();
        let known = evictions.get(&budget.metadata.key);
        let version = |pod: &&str| known.and_then(|known| known.get(*pod)).map(|noted| noted.version);
        let newest = budget.metadata.resource_version;
        pods.iter().map(|pod| version(pod).unwrap_or(newest)).max().unwrap_or(newest)
    }

    fn evictions(&self) -> MutexGuard<'_, HashMap<Key, BTreeMap<Box<str>, Noted>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
