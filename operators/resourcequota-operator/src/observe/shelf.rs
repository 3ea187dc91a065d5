//! The facts of the objects that one feed follows, by key; and the quotas that a change of them wakes.
//!
//! An object that comes was charged by the apiserver before it was stored, as was one that grows: a quota is counted
//! again a while later, in case a count in between has missed it. Left out: the objects themselves.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion};
use shared::runtime::informer::Store;
use shared::runtime::queue::{Cause, Queue};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Quotas;
use crate::objects::{Countable, Evaluator};

/// How long after an object was created its quotas are counted again.
pub const CREATED_DELAY: Duration = Duration::from_secs(10);
const CREATED: &str = "a count of what was created";

/// For so long it is known what has come. The charge for it is given up before that.
const BORN_KEPT: Duration = Duration::from_secs(15);

/// Facts by key; and what has come of late, by namespace, whether or not it is still there.
pub(crate) struct Shelf<F> {
    facts: Mutex<BTreeMap<Key, F>>,
    born: Mutex<Born<F>>,
}

struct Born<F> {
    by_namespace: BTreeMap<Text, Vec<Birth<F>>>,
    swept: Instant,
}

struct Birth<F> {
    at: Instant,
    version: ResourceVersion,
    facts: F,
}

impl<F> Default for Shelf<F> {
    fn default() -> Self {
        let born = Born { by_namespace: BTreeMap::new(), swept: Instant::now() };
        Self { facts: Mutex::default(), born: Mutex::new(born) }
    }
}

impl<F> Born<F> {
    fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept) >= BORN_KEPT {
            self.swept = now;
            self.by_namespace.retain(|_, births| {
                births.retain(|birth| now.saturating_duration_since(birth.at) < BORN_KEPT);
                !births.is_empty()
            });
        }
    }
}

impl<F: Clone> Shelf<F> {
    fn facts(&self) -> MutexGuard<'_, BTreeMap<Key, F>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn births(&self) -> MutexGuard<'_, Born<F>> {
        self.born.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_born(&self, namespace: &str, version: ResourceVersion, facts: F) {
        let (mut born, at) = (self.births(), Instant::now());
        born.sweep(at);
        born.by_namespace.entry(Text::new(namespace)).or_default().push(Birth { at, version, facts });
    }

    /// The facts of the objects that have come to a namespace after this version, as they were then.
    pub(crate) fn born(&self, namespace: &str, since: ResourceVersion) -> Vec<F> {
        let born = self.births();
        let births = born.by_namespace.get(namespace).into_iter().flatten();
        births.filter(|birth| birth.version > since).map(|birth| birth.facts.clone()).collect()
    }

    /// The facts of all objects.
    pub(crate) fn all(&self) -> Vec<F> {
        self.facts().values().cloned().collect()
    }

    /// The facts of the objects of a namespace, by name.
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

    /// Adds a quota.
    pub(crate) fn add(&self, quota: &Key, version: ResourceVersion) {
        self.quotas().insert(quota.clone(), version);
    }

    /// Takes out those that have waited for this version or an older one.
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
    /// Who sees to which kinds are followed.
    pub(crate) monitors: Arc<Notify>,
}

impl Waker {
    /// Has the quotas of a namespace, or with `""` of all, counted that count this kind. DeviceClasses say which kinds
    /// that is.
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

/// Fills a shelf, and wakes quotas.
pub(crate) struct ShelfStore<F> {
    pub(crate) evaluator: Evaluator,
    /// `""` for all.
    pub(crate) namespace: String,
    pub(crate) shelf: Arc<Shelf<F>>,
    pub(crate) waker: Waker,
    pub(crate) waiting: Waiting,
}

impl<T: Countable> Store<T> for ShelfStore<T::Facts> {
    /// Upstream: `controllerFor`, `pkg/controller/resourcequota/resource_quota_monitor.go`, and `DefaultUpdateFilter`,
    /// `pkg/quota/v1/install/update_filter.go`.
    fn apply(&self, object: Arc<T>) {
        let (key, facts) = (object.key(), object.facts());
        let old = self.shelf.facts().insert(key.clone(), facts.clone());
        if old.is_none() {
            self.shelf.is_born(key.namespace(), object.resource_version(), facts.clone());
        }
        match old {
            // Nobody charges these.
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
        let mut facts = self.shelf.facts();
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

impl<F: Clone> ShelfStore<F> {
    fn remove(&self, key: &Key) {
        let known = self.shelf.facts().remove(key);
        if known.is_some() {
            self.waker.wake(&self.evaluator, key.namespace());
        }
    }
}
