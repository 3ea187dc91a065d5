//! The facts of the objects that one feed watches, by key, and the quotas that a change of them wakes.
//!
//! The apiserver charges an object before it stores it. The quota is counted again a while later, in case a count in
//! between missed the object.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion};
use shared::following::informer::Store;
use shared::working::queue::{Cause, Queue};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Quotas;
use crate::objects::{Countable, Evaluator};

/// How long after an object was created its quotas are counted again.
pub const CREATED_DELAY: Duration = Duration::from_secs(10);
const CREATED: &str = "a recount after a creation";

/// How long arrivals are kept. Their charges expire earlier.
const ARRIVALS_KEPT: Duration = Duration::from_secs(15);

/// Facts by key; and the recent arrivals by namespace, even if they are gone again.
pub(crate) struct FactCache<F> {
    facts: Mutex<BTreeMap<Key, F>>,
    arrivals: Mutex<Arrivals<F>>,
}

struct Arrivals<F> {
    by_namespace: BTreeMap<Text, Vec<Arrival<F>>>,
    swept: Instant,
}

struct Arrival<F> {
    at: Instant,
    version: ResourceVersion,
    facts: F,
}

impl<F> Default for FactCache<F> {
    fn default() -> Self {
        let arrivals = Arrivals { by_namespace: BTreeMap::new(), swept: Instant::now() };
        Self { facts: Mutex::default(), arrivals: Mutex::new(arrivals) }
    }
}

impl<F> Arrivals<F> {
    fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept) >= ARRIVALS_KEPT {
            self.swept = now;
            self.by_namespace.retain(|_, arrivals| {
                arrivals.retain(|arrival| now.saturating_duration_since(arrival.at) < ARRIVALS_KEPT);
                !arrivals.is_empty()
            });
        }
    }
}

impl<F: Clone> FactCache<F> {
    fn facts(&self) -> MutexGuard<'_, BTreeMap<Key, F>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals<F>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_arrival(&self, namespace: &str, version: ResourceVersion, facts: F) {
        let (mut arrivals, at) = (self.arrivals(), Instant::now());
        arrivals.sweep(at);
        arrivals.by_namespace.entry(Text::new(namespace)).or_default().push(Arrival { at, version, facts });
    }

    /// The facts of the objects that arrived in a namespace after this version, as they were then.
    pub(crate) fn arrived_since(&self, namespace: &str, since: ResourceVersion) -> Vec<F> {
        let all = self.arrivals();
        let here = all.by_namespace.get(namespace).into_iter().flatten();
        here.filter(|arrival| arrival.version > since).map(|arrival| arrival.facts.clone()).collect()
    }

    pub(crate) fn all(&self) -> Vec<F> {
        self.facts().values().cloned().collect()
    }

    pub(crate) fn of(&self, namespace: &str) -> Vec<F> {
        // `0` is the character after `/`.
        let (from, to) = (format!("{namespace}/"), format!("{namespace}0"));
        let facts = self.facts();
        facts.range::<str, _>((Included(&*from), Excluded(&*to))).map(|(_, facts)| facts.clone()).collect()
    }
}

/// The quotas that wait until a kind has been seen up to a version; clones share one list.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Arc<Mutex<BTreeMap<Key, ResourceVersion>>>);

impl Waiting {
    fn quotas(&self) -> MutexGuard<'_, BTreeMap<Key, ResourceVersion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, quota: &Key, version: ResourceVersion) {
        self.quotas().insert(quota.clone(), version);
    }

    /// Removes and returns those that wait for this version or an older one.
    fn reached(&self, version: ResourceVersion) -> Vec<Key> {
        let mut quotas = self.quotas();
        let reached: Vec<Key> =
            quotas.iter().filter(|(_, wanted)| **wanted <= version).map(|(key, _)| key.clone()).collect();
        for key in &reached {
            quotas.remove(key);
        }
        reached
    }
}

/// The queue of quotas, and which of them a change concerns; cheap to clone.
#[derive(Clone)]
pub(crate) struct Waker {
    pub(crate) quotas: Quotas,
    pub(crate) queue: Queue,
    /// Wakes the monitors, which decide which kinds are watched.
    pub(crate) monitors: Arc<Notify>,
}

impl Waker {
    /// Enqueues the quotas of a namespace, or with `""` of all, that count this kind. DeviceClasses may change which kinds
    /// are counted.
    pub(crate) fn wake(&self, evaluator: &Evaluator, namespace: &str) {
        if *evaluator == Evaluator::DeviceClasses {
            self.monitors.notify_one();
        }
        for key in self.quotas.counting(evaluator, namespace) {
            self.queue.add(&key, Cause::Event);
        }
    }

    fn wake_later(&self, evaluator: &Evaluator, namespace: &str) {
        for key in self.quotas.counting(evaluator, namespace) {
            self.queue.add_after(&key, CREATED_DELAY, CREATED);
        }
    }
}

pub(crate) struct FactStore<F> {
    pub(crate) evaluator: Evaluator,
    /// `""` for all.
    pub(crate) namespace: String,
    pub(crate) cache: Arc<FactCache<F>>,
    pub(crate) waker: Waker,
    pub(crate) waiting: Waiting,
}

impl<T: Countable> Store<T> for FactStore<T::Facts> {
    /// Upstream: `controllerFor`, `pkg/controller/resourcequota/resource_quota_monitor.go`, and `DefaultUpdateFilter`,
    /// `pkg/quota/v1/install/update_filter.go`.
    fn apply(&self, object: Arc<T>) {
        let (key, facts) = (object.key(), object.facts());
        let old = self.cache.facts().insert(key.clone(), facts.clone());
        if old.is_none() {
            self.cache.note_arrival(key.namespace(), object.resource_version(), facts.clone());
        }
        match old {
            // The apiserver does not charge these.
            None if self.evaluator == Evaluator::DeviceClasses => self.waker.wake(&self.evaluator, ""),
            None => self.waker.wake_later(&self.evaluator, key.namespace()),
            Some(old) if old != facts => self.waker.wake(&self.evaluator, key.namespace()),
            Some(_) => {}
        }
    }

    fn delete(&self, last: Arc<T>) {
        self.remove(last.key());
    }

    fn delete_unread(&self, key: &Key) {
        self.remove(key);
    }

    fn reset(&self, live: Vec<Arc<T>>, unreadable: &BTreeMap<Key, String>) {
        let mut facts = self.cache.facts();
        facts.retain(|key, _| unreadable.contains_key(key));
        facts.extend(live.iter().map(|object| (object.key().clone(), object.facts())));
    }

    /// By now the list counts as listed.
    fn listed(&self, _: ResourceVersion, _: u64) {
        self.waker.wake(&self.evaluator, &self.namespace);
    }

    fn advance(&self, version: ResourceVersion) {
        for quota in self.waiting.reached(version) {
            self.waker.queue.add(&quota, Cause::Event);
        }
    }
}

impl<F: Clone> FactStore<F> {
    fn remove(&self, key: &Key) {
        let known = self.cache.facts().remove(key);
        if known.is_some() {
            self.waker.wake(&self.evaluator, key.namespace());
        }
    }
}
