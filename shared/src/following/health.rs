//! How the list and watch of one informer fares: its failures, what it cannot read, when it last heard from the
//! apiserver, and requests to watch or list again.
//!
//! Left out: how far its cache has come, which is [`crate::following::cache::Progress`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::object::Key;

/// How one informer fares, for `/readyz`, metrics and read-your-writes.
pub struct Health {
    /// The resource as upstream prints it, such as `replicasets.apps`.
    pub resource: String,
    decode_errors: AtomicU64,
    lists: AtomicU64,
    last_list: Mutex<Option<ListTimes>>,
    unreadable: Mutex<BTreeMap<Key, String>>,
    unhandled: Mutex<BTreeSet<Key>>,
    failing: Mutex<Option<String>>,
    pub(crate) reconnect: Notify,
    pub(crate) retry: Notify,
    wanted_list: AtomicU64,
    listed_from: Mutex<Option<Instant>>,
    watched_from: Mutex<Option<Instant>>,
    created: Instant,
    /// When the apiserver last sent something, in milliseconds after `created` and 1 more; 0 for never.
    heard: AtomicU64,
    events: AtomicU64,
}

/// When a list began, and when it was in.
struct ListTimes {
    began: Instant,
    ended: Option<Instant>,
}

impl Health {
    pub(crate) fn new(resource: String) -> Self {
        Self {
            resource,
            decode_errors: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            last_list: Mutex::default(),
            unreadable: Mutex::default(),
            unhandled: Mutex::default(),
            failing: Mutex::default(),
            reconnect: Notify::new(),
            retry: Notify::new(),
            wanted_list: AtomicU64::new(0),
            listed_from: Mutex::default(),
            watched_from: Mutex::default(),
            created: Instant::now(),
            heard: AtomicU64::new(0),
            events: AtomicU64::new(0),
        }
    }

    /// How many events and listed objects did not decode, or made a handler panic.
    pub fn decode_errors(&self) -> u64 {
        self.decode_errors.load(Ordering::Relaxed)
    }

    /// How long ago the apiserver last sent something: an event, a bookmark or a list; none if it never has.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        let heard = self.heard.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.created.elapsed().saturating_sub(Duration::from_millis(heard)))
    }

    pub(crate) fn hears(&self) {
        let now = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.heard.store(now + 1, Ordering::Relaxed);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// How many events its watches have sent, bookmarks among them.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// How many times the whole resource was listed.
    pub fn lists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed)
    }

    /// The objects whose newest state does not decode, and why; the cache holds their last readable state, if any.
    pub fn unreadable(&self) -> BTreeMap<Key, String> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The objects of whose newest change a handler panicked. A list tells no handler of an object that is as it was, so
    /// only the object's next change ends this.
    pub fn unhandled(&self) -> BTreeSet<Key> {
        self.unhandled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the resource cannot be listed or watched at the moment.
    pub fn failing(&self) -> Option<String> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the running watch and starts it again where it stopped: what breaks a silent stall. A back-off goes on.
    pub fn reconnect(&self) {
        self.reconnect.notify_one();
    }

    /// The same, unless the running watch was asked for less than `age` ago: many who wait for one watch would otherwise
    /// restart it one after the other, and a slow server would never get to send anything. Gives whether it does.
    pub fn reconnect_older(&self, age: Duration) -> bool {
        let begun = *self.watched_from.lock().unwrap_or_else(PoisonError::into_inner);
        let is_older = begun.is_none_or(|begun| begun.elapsed() >= age);
        if is_older {
            self.begins_watch();
            self.reconnect();
        }
        is_older
    }

    pub(crate) fn begins_watch(&self) {
        *self.watched_from.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Lists everything anew, after a back-off; gives the number that [`crate::following::cache::Progress::list`] has reached
    /// once that is done. One list that begins after several requests fulfils them all.
    pub fn relist(&self) -> u64 {
        let wanted = self.next_list();
        self.wanted_list.fetch_max(wanted, Ordering::Relaxed);
        self.reconnect.notify_one();
        wanted
    }

    /// As [`Self::relist`], at once even in a back-off: for what all work waits for.
    pub(crate) fn relist_now(&self) -> u64 {
        let wanted = self.relist();
        self.retry();
        wanted
    }

    pub(crate) fn retry(&self) {
        self.retry.notify_one();
    }

    /// When the last list that is in was asked for.
    pub fn listed_from(&self) -> Option<Instant> {
        *self.listed_from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_listed_from(&self, begun: Instant) {
        *self.listed_from.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        self.ends_list();
    }

    /// The number of the next list that begins: it has seen all that was written before now.
    pub fn next_list(&self) -> u64 {
        self.lists() + 1
    }

    /// How long to wait before requesting a list, so that lists take at most a tenth of the time.
    pub fn pause_before_list(&self) -> Duration {
        let now = Instant::now();
        self.last_list().as_ref().map_or(Duration::ZERO, |ListTimes { began, ended }| {
            let ended = ended.unwrap_or(now);
            (ended + (ended - *began) * 9).saturating_duration_since(now)
        })
    }

    fn last_list(&self) -> MutexGuard<'_, Option<ListTimes>> {
        self.last_list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an error; gives whether it is another one than before, and so worth a log line.
    pub(crate) fn fails(&self, error: &str) -> bool {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.as_deref() == Some(error) {
            return false;
        }
        *failing = Some(error.to_owned());
        true
    }

    /// Notes that the watch runs; gives whether it did not before.
    pub(crate) fn works(&self) -> bool {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    pub(crate) fn cannot_read(&self, key: Key, error: String) {
        self.decode_errors.fetch_add(1, Ordering::Relaxed);
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).insert(key, error);
    }

    pub(crate) fn can_read(&self, key: &Key) {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    pub(crate) fn cannot_handle(&self, key: Key) {
        self.decode_errors.fetch_add(1, Ordering::Relaxed);
        self.unhandled.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
    }

    pub(crate) fn handles(&self, key: &Key) {
        self.unhandled.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Notes that a list begins; gives its number.
    pub(crate) fn begins_list(&self) -> u64 {
        *self.last_list() = Some(ListTimes { began: Instant::now(), ended: None });
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.lists.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn ends_list(&self) {
        if let Some(times) = &mut *self.last_list() {
            times.ended = Some(Instant::now());
        }
    }

    pub(crate) fn wanted_list(&self) -> u64 {
        self.wanted_list.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_who_wait_for_a_watch_restart_it_once() {
        let (health, age) = (Health::new("pods".to_owned()), Duration::from_secs(5));
        let mut restarts = 0;
        for _ in 0..100 {
            restarts += u32::from(health.reconnect_older(age));
            tokio::time::advance(age / 50).await;
        }
        assert_eq!(restarts, 2);
        health.begins_watch();
        assert!(!health.reconnect_older(age), "it was just asked for by the watch itself");
    }
}
