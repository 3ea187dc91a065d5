//! Since which version of a budget each of its evictions is noted there: the pods must have seen that version before an
//! eviction of a pod that is not there counts as done. And when a pod of it was last evicted.
//!
//! The newest version would do too, but the pods often reach that late, for most writes of a budget change no pod.
//! After a start only the newest is known, and no eviction that is done. Left out: anything that decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::{Key, ResourceVersion};
use shared::api::time::Time;
use shared::runtime::cache::Change;
use shared::runtime::clock::left_of;

use crate::objects::PodDisruptionBudget;

/// So long after an eviction the next one is expected: a drain comes to the pods of a node one after the other, and
/// waits in between until those that replace them are ready.
const EXPECTED: Duration = Duration::from_mins(5);

/// The evictions of each budget that has, or had, some.
#[derive(Default)]
pub struct Evictions(Mutex<HashMap<Key, Known>>);

/// The evictions of one budget.
#[derive(Default)]
struct Known {
    /// Those that it has, by the name of the pod.
    pods: BTreeMap<Box<str>, Noted>,
    /// When the last one began.
    last: Option<Time>,
}

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
        let Some(budget) = change.existing() else { return };
        let version = budget.metadata.resource_version;
        let noted = budget.status.disrupted_pods.iter().map(|(name, began)| {
            let before = known.pods.get(name).filter(|noted| noted.began == *began).copied();
            (name.clone(), before.unwrap_or(Noted { began: *began, version }))
        });
        let pods: BTreeMap<_, _> = noted.collect();
        let last = pods.values().map(|noted| noted.began).max().max(known.last);
        if last.is_some() {
            evictions.insert(key.clone(), Known { pods, last });
        }
    }

    /// Whether further pods of this budget are likely to be evicted, because one was not long ago.
    pub fn are_expected(&self, key: &Key, now: Timestamp) -> bool {
        let last = self.evictions().get(key).and_then(|known| known.last);
        last.is_some_and(|last| left_of(EXPECTED, last.timestamp(), now).is_some())
    }

    /// Since which version all of these are noted.
    pub fn version(&self, budget: &PodDisruptionBudget, pods: &[&str]) -> ResourceVersion {
        let evictions = self.evictions();
        let known = evictions.get(&budget.metadata.key);
        let version = |pod: &&str| known.and_then(|known| known.pods.get(*pod)).map(|noted| noted.version);
        let newest = budget.metadata.resource_version;
        pods.iter().map(|pod| version(pod).unwrap_or(newest)).max().unwrap_or(newest)
    }

    fn evictions(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;
    use serde_json::json;
    use shared::testing::{NOW, object};

    use super::*;

    fn budget(evicted: &[&str]) -> Arc<PodDisruptionBudget> {
        let began = Time::of(NOW);
        let pods: BTreeMap<_, _> = evicted.iter().map(|name| (*name, json!(began))).collect();
        object("policy/v1", "PodDisruptionBudget", "web").set(&["status", "disruptedPods"], json!(pods)).build()
    }

    #[test]
    fn the_next_eviction_is_expected_for_a_while_after_one_that_is_done() {
        let evictions = Evictions::default();
        let [none, one] = [budget(&[]), budget(&["web-1"])];
        let key = &none.metadata.key;
        let after = |seconds| NOW + SignedDuration::from_secs(seconds);
        evictions.note(&Change::Added(&none));
        assert!(!evictions.are_expected(key, NOW));
        evictions.note(&Change::Updated { old: &none, new: &one });
        assert!(evictions.are_expected(key, after(1)));
        evictions.note(&Change::Updated { old: &one, new: &none });
        assert!(evictions.are_expected(key, after(299)));
        assert!(!evictions.are_expected(key, after(300)));
        evictions.note(&Change::Deleted(&none));
        assert!(!evictions.are_expected(key, after(1)), "it is another one that comes under this name");
    }
}
