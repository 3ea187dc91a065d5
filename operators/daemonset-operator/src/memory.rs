//! The memory between syncs: pods that have failed. A node whose kubelet keeps refusing a pod gets the next one after a
//! growing delay.
//!
//! It is lost with this process, as upstream's is; the delays then start again with the shortest one.
//!
//! Upstream: `failedPodsBackoff`, `pkg/controller/daemon/daemon_controller.go`, and `Backoff`,
//! `staging/src/k8s.io/client-go/util/flowcontrol/backoff.go`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::transport::clock::left_of;

use crate::objects::DaemonSet;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(15);
/// After so long without a failure the next one is a first one.
const FORGOTTEN: Duration = Duration::from_mins(30);

/// The wait after a failed pod was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub since: Timestamp,
    /// How long the next one that fails stays.
    pub wait: Duration,
}

impl Pause {
    /// The wait after another failure now; `before` is the one before, if it is remembered.
    pub fn next(before: Option<Self>, now: Timestamp) -> Self {
        let wait = before.map_or(FIRST, |before| before.wait.saturating_mul(2).min(LONGEST));
        Self { since: now, wait }
    }

    /// What is left of it; none if it is over.
    pub fn left(self, now: Timestamp) -> Option<Duration> {
        left_of(self.wait, self.since, now)
    }

    fn is_remembered(self, now: Timestamp) -> bool {
        left_of(FORGOTTEN, self.since, now).is_some()
    }
}

#[derive(Debug, Default)]
pub struct Failures {
    by_key: Mutex<BTreeMap<Key, OfSet>>,
}

#[derive(Debug)]
struct OfSet {
    set: Uid,
    generation: i64,
    by_node: BTreeMap<Text, Pause>,
}

impl OfSet {
    fn is_of(&self, set: &DaemonSet) -> bool {
        (self.set, self.generation) == (set.metadata.uid, set.status.observed_generation)
    }
}

impl Failures {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, OfSet>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of a DaemonSet that count still, by node.
    pub fn of(&self, set: &DaemonSet, now: Timestamp) -> BTreeMap<Text, Pause> {
        let by_key = self.lock();
        let known = by_key.get(&set.metadata.key).filter(|known| known.is_of(set));
        let pauses = known.into_iter().flat_map(|known| &known.by_node).filter(|(_, pause)| pause.is_remembered(now));
        pauses.map(|(node, pause)| (node.clone(), *pause)).collect()
    }

    pub fn remember(&self, set: &DaemonSet, node: &Text, pause: Pause) {
        let mut by_key = self.lock();
        let new =
            || OfSet { set: set.metadata.uid, generation: set.status.observed_generation, by_node: BTreeMap::new() };
        let known = by_key.entry(set.metadata.key.clone()).or_insert_with(new);
        if !known.is_of(set) {
            *known = new();
        }
        known.by_node.retain(|_, known| known.is_remembered(pause.since));
        known.by_node.insert(node.clone(), pause);
    }

    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    pub fn start_over(&self) {
        self.lock().clear();
    }
}
