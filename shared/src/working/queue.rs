//! The work queue: holds each key once, and never hands out a key twice at the same time.
//!
//! As client-go's (`util/workqueue`: dirty and processing sets, delays, per-key back-off), with three differences:
//! - An event of a failed key leads to a sync, at most once a second. If that sync fails too, the failure does not
//!   count and the next retry keeps its time. An edit of the object's spec ends the back-off.
//! - Edits overtake other events, which still get every fifth turn.
//! - There is no rate limit over all keys, so one failing key never slows another.
//!
//! A queue sleeps until work starts: a standby's queue accepts no keys, because no worker would take them.
//! Left out: how a key is synced (see [`crate::working::worker`]).

mod entry;
mod look;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::api::object::Key;
use crate::transport::clock::part_of;
use crate::working::decisions::Trigger;
use entry::{Due, Entry, Pause, Processing, Queued, SyncRequest};
pub(crate) use look::{Standing, Summary};

/// Why a key is added. An edit overtakes events and ends a back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A related object changed, the object was listed, or a timer fired.
    Event,
    Edit,
}

/// Exponential back-off of a key: `first`, doubled after each failure in a row, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    pub max: Duration,
}

impl Default for Backoff {
    /// client-go's first wait of 5 ms, and at most 30 s.
    fn default() -> Self {
        Self { first: Duration::from_millis(5), max: Duration::from_secs(30) }
    }
}

impl Backoff {
    /// The wait after this many failures in a row.
    pub fn after(self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doubled).min(self.max)
    }
}

/// The queue's reports to its metrics. Upstream: staging/src/k8s.io/client-go/util/workqueue/metrics.go.
pub trait Observer: Send + Sync {
    /// A key was added that was not waiting already.
    fn added(&self);
    fn depth(&self, keys: usize);
    /// A key was taken after this wait.
    fn dequeued(&self, waited: Duration);
    fn worked(&self, took: Duration);
    /// A key is retried after a failure.
    fn retried(&self);
    /// A sync failed for this reason, which is one of a bounded set.
    fn failed(&self, reason: &'static str);
    /// The first write of a sync was accepted, this long after the event that led to the sync.
    fn wrote(&self, after: Duration);
}

/// How the sync of a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Done,
    /// It succeeded. The key is synced again after this time, for this purpose, unless something adds it earlier.
    After(Duration, &'static str),
    /// It succeeded. Events within this time lead to one sync at its end; an edit does not wait.
    Rest(Duration),
    /// It did a part. The key is retried after its back-off; an event waits for this time only.
    Partly(Duration),
    /// It failed. The key is retried after its back-off; syncs for events are at least a second apart.
    Retry,
    /// It did not run. The key is taken again at once.
    Again,
}

/// A queue of keys, asleep at first; cheap to clone.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    name: &'static str,
    backoff: Backoff,
    observer: Option<Box<dyn Observer>>,
    keeps_delays: AtomicBool,
    held: AtomicUsize,
    state: Mutex<State>,
    wake: Notify,
}

/// A key that no worker syncs, although it was taken.
pub(crate) struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// No worker runs, so the queue takes no keys.
    #[default]
    Asleep,
    /// The queue takes the keys of all existing objects. None of them counts as an edit.
    Filling,
    Open,
    ShutDown,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// Boxed: the map allocates for twice its keys, and most of an entry is empty.
    keys: HashMap<Key, Box<Entry>>,
    edits: VecDeque<Key>,
    events: VecDeque<Key>,
    edits_in_a_row: u32,
    /// When a sync ended last.
    ended: Option<Instant>,
    timers: BTreeSet<(Instant, Key)>,
}

/// After this many edits in a row another key goes first.
const EDITS_IN_A_ROW: u32 = 4;

/// Capacity for this many keys is always kept.
const ROOM_MIN: usize = 64;

/// The least time between two syncs of a failed key for events.
const EVENTS_APART: Duration = Duration::from_secs(1);

impl Queue {
    /// An empty queue; `name` is upstream's, as in the metrics.
    pub fn new(name: &'static str, backoff: Backoff, observer: Option<Box<dyn Observer>>) -> Self {
        let (state, wake, keeps_delays) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        let held = AtomicUsize::new(0);
        Self { shared: Arc::new(Shared { name, backoff, observer, keeps_delays, held, state, wake }) }
    }

    /// Delays of this queue are times that have to pass, whatever happens meanwhile.
    pub fn keep_delays(&self) {
        self.shared.keeps_delays.store(true, Ordering::Relaxed);
    }

    /// Wake queues; `fill` adds the keys of all existing objects.
    pub fn start(queues: &[Self], fill: impl FnOnce()) {
        for queue in queues {
            queue.advance(Stage::Asleep, Stage::Filling);
        }
        fill();
        for queue in queues {
            queue.advance(Stage::Filling, Stage::Open);
        }
    }

    fn advance(&self, from: Stage, to: Stage) {
        let mut state = self.state();
        if state.stage == from {
            state.stage = to;
        }
    }

    pub fn name(&self) -> &'static str {
        self.shared.name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe(&self, tell: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.shared.observer {
            tell(&**observer);
        }
    }

    /// Add a key. A key that rests, or that failed within the last second, waits unless `cause` is an edit.
    pub fn add(&self, key: &Key, cause: Cause) {
        self.request(key, SyncRequest { cause, trigger: None });
    }

    /// As [`Self::add`], and note the change that caused it.
    pub(crate) fn add_for(&self, key: &Key, cause: Cause, trigger: Trigger) {
        self.request(key, SyncRequest { cause, trigger: Some(trigger) });
    }

    fn request(&self, key: &Key, request: SyncRequest) {
        let mut state = self.state();
        let next = state.first_timer();
        let added = state.add(key, request, Instant::now());
        self.tell_depth(&state, added);
        // The first delayed key starts a timer that no waiter watches yet.
        let wakes = added || state.first_timer() != next;
        drop(state);
        if wakes {
            self.shared.wake.notify_one();
        }
    }

    /// Add a key once `delay` has passed, for a purpose such as `"the deadline of its start"`. Of several delays the
    /// earliest counts; [`Self::add`] does not cancel one.
    pub fn add_after(&self, key: &Key, delay: Duration, purpose: &'static str) {
        self.request_after(key, delay, purpose, None);
    }

    /// As [`Self::add_after`], and note the change that caused it.
    pub(crate) fn add_after_for(&self, key: &Key, delay: Duration, purpose: &'static str, trigger: Trigger) {
        self.request_after(key, delay, purpose, Some(trigger));
    }

    fn request_after(&self, key: &Key, delay: Duration, purpose: &'static str, trigger: Option<Trigger>) {
        if delay.is_zero() {
            return self.request(key, SyncRequest { cause: Cause::Event, trigger });
        }
        // The delay is planned, so it does not count as the time until the change is answered.
        let trigger = trigger.map(|change| Trigger { seen: after(change.seen, delay), ..change });
        self.state().set_timer(key, Due { at: after(Instant::now(), delay), purpose }, trigger);
        self.shared.wake.notify_one();
    }

    /// Wait for the next key and take it; none after [`Self::shut_down`]. The caller must call [`Self::finish`].
    pub async fn next(&self) -> Option<Key> {
        loop {
            let due = {
                let mut state = self.state();
                if state.stage == Stage::ShutDown {
                    return None;
                }
                let now = Instant::now();
                for _ in 0..state.fire_timers(now) {
                    self.observe(|observer| observer.added());
                }
                if let Some((key, waited)) = state.take(now) {
                    self.observe(|observer| {
                        observer.dequeued(waited);
                        observer.depth(state.len());
                    });
                    if state.len() > 0 || !state.timers.is_empty() {
                        // Another waiter must watch the remaining keys while this caller works.
                        self.shared.wake.notify_one();
                    }
                    return Some(key);
                }
                state.first_timer()
            };
            match due {
                Some(due) => tokio::select! {
                    () = self.shared.wake.notified() => {}
                    () = sleep_until(due) => {}
                },
                None => self.shared.wake.notified().await,
            }
        }
    }

    /// Return a key from [`Self::next`], with the result of its sync.
    pub fn finish(&self, key: &Key, how: Finish) {
        let mut state = self.state();
        let finished = state.finish(key, how, self.shared.backoff, Instant::now());
        if let Some(took) = finished.took {
            self.observe(|observer| observer.worked(took));
        }
        if finished.retries {
            self.observe(|observer| observer.retried());
        }
        self.tell_depth(&state, finished.queued);
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Retry all failed keys, spread over `window`: the cause may be gone.
    pub fn retry_all_spread(&self, window: Duration) {
        self.state().hasten(Instant::now(), || part_of(window), |entry| entry.failures > 0);
        self.shared.wake.notify_one();
    }

    /// As [`Self::retry_all_spread`], for delayed keys too, unless their delays are kept: the event they wait for may
    /// never come.
    pub fn add_all_spread(&self, window: Duration) {
        let keeps_delays = self.shared.keeps_delays.load(Ordering::Relaxed);
        self.state().hasten(Instant::now(), || part_of(window), |entry| entry.failures > 0 || !keeps_delays);
        self.shared.wake.notify_one();
    }

    /// How often the key has failed in a row.
    pub fn failures(&self, key: &Key) -> u32 {
        self.state().keys.get(key).map_or(0, |entry| entry.failures)
    }

    /// The change that led to the running sync of this key.
    pub(crate) fn trigger(&self, key: &Key) -> Option<Trigger> {
        self.state().keys.get(key)?.processing.as_ref()?.trigger.clone()
    }

    pub(crate) fn wrote(&self, after: Duration) {
        self.observe(|observer| observer.wrote(after));
    }

    pub(crate) fn failed(&self, reason: &'static str) {
        self.observe(|observer| observer.failed(reason));
    }

    /// Counts a taken key as held until the result is dropped.
    pub(crate) fn hold(&self) -> Held {
        self.shared.held.fetch_add(1, Ordering::Relaxed);
        Held(Arc::clone(&self.shared))
    }

    /// How many keys are held.
    pub(crate) fn held(&self) -> usize {
        self.shared.held.load(Ordering::Relaxed)
    }

    /// The keys being processed, and for how long: for `unfinished_work_seconds` and
    /// `longest_running_processor_seconds`.
    pub fn running(&self) -> Vec<Duration> {
        let state = self.state();
        state.keys.values().filter_map(|entry| entry.processing.as_ref()).map(|work| work.since.elapsed()).collect()
    }

    pub(crate) fn waiting(&self) -> Vec<Key> {
        let state = self.state();
        state.edits.iter().chain(&state.events).cloned().collect()
    }

    /// How many keys wait to be taken.
    pub fn len(&self) -> usize {
        self.state().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no key waits, is being synced, or has failed.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn is_at_rest(&self) -> bool {
        let state = self.state();
        state.keys.values().all(|entry| {
            let Entry { queued, processing, dirty: _, failures, pause, timer, unseen: _ } = &**entry;
            let rests = timer.is_some() && pause.is_some();
            queued.is_none() && processing.is_none() && *failures == 0 && !rests
        })
    }

    /// Close the queue: every caller of [`Self::next`] gets `None`.
    pub fn shut_down(&self) {
        self.state().stage = Stage::ShutDown;
        self.shared.wake.notify_waiters();
        self.shared.wake.notify_one();
    }

    fn tell_depth(&self, state: &State, added: bool) {
        if added {
            self.observe(|observer| {
                observer.added();
                observer.depth(state.len());
            });
        }
    }
}

#[derive(Default)]
struct Finished {
    took: Option<Duration>,
    retries: bool,
    queued: bool,
}

impl State {
    fn len(&self) -> usize {
        self.edits.len() + self.events.len()
    }

    /// Free most of the memory from when many keys waited.
    fn give_back(&mut self) {
        if self.keys.capacity() > ROOM_MIN && self.keys.len() < self.keys.capacity() / 8 {
            let room = self.keys.len() * 2;
            self.keys.shrink_to(room);
            self.edits.shrink_to(room);
            self.events.shrink_to(room);
        }
    }

    fn first_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Returns whether the key has been put into a lane.
    fn add(&mut self, key: &Key, request: SyncRequest, now: Instant) -> bool {
        let request = match self.stage {
            Stage::Asleep | Stage::ShutDown => return false,
            Stage::Filling => SyncRequest::event(),
            Stage::Open => request,
        };
        let cause = request.cause;
        let entry = self.keys.entry(key.clone()).or_default();
        if cause == Cause::Edit {
            (entry.failures, entry.pause) = (0, None);
        }
        if entry.processing.is_some() {
            entry.dirty = Some(entry.dirty.take().map_or(request.clone(), |known| known.or(request)));
            return false;
        }
        if let Some(due) = entry.pause.map(Pause::end).filter(|due| *due > now) {
            self.set_timer(key, Due { at: due, purpose: "" }, request.trigger);
            return false;
        }
        let is_new = entry.queued.is_none();
        match &mut entry.queued {
            Some(queued) if queued.request.cause >= cause => return false,
            Some(queued) => {
                queued.request = request;
                self.events.retain(|waiting| waiting != key);
            }
            none => *none = Some(Queued { request, since: now }),
        }
        match cause {
            Cause::Edit => self.edits.push_back(key.clone()),
            Cause::Event => self.events.push_back(key.clone()),
        }
        is_new
    }

    /// Shorten the wait of each of these keys to at most its `delay`.
    fn hasten(&mut self, now: Instant, delay: impl Fn() -> Duration, is_meant: impl Fn(&Entry) -> bool) {
        let mut due = Vec::new();
        for (key, entry) in self.keys.iter_mut().filter(|(_, entry)| is_meant(entry)) {
            let earlier = now + delay();
            if let Some(Due { purpose, .. }) = entry.timer.filter(|timer| timer.at > earlier) {
                if let Some(retry) = entry.pause.as_mut().and_then(|pause| pause.retry.as_mut()) {
                    *retry = earlier.min(*retry);
                }
                due.push((key.clone(), Due { at: earlier, purpose }));
            }
        }
        for (key, earlier) in due {
            self.set_timer(&key, earlier, None);
        }
    }

    fn set_timer(&mut self, key: &Key, due: Due, trigger: Option<Trigger>) {
        if matches!(self.stage, Stage::Asleep | Stage::ShutDown) {
            return;
        }
        let entry = self.keys.entry(key.clone()).or_default();
        match entry.timer {
            Some(earlier) if earlier.at <= due.at => {
                entry.unseen = entry.unseen.take().or(trigger);
                return;
            }
            Some(later) => {
                self.timers.remove(&(later.at, key.clone()));
            }
            None => {}
        }
        entry.unseen = trigger.or(entry.unseen.take());
        entry.timer = Some(due);
        self.timers.insert((due.at, key.clone()));
    }

    /// Returns how many keys it put into a lane.
    fn fire_timers(&mut self, now: Instant) -> usize {
        let mut added = 0;
        while let Some((due, key)) = self.timers.pop_first() {
            if due > now {
                self.timers.insert((due, key));
                break;
            }
            if let Some(entry) = self.keys.get_mut(&key) {
                entry.timer = None;
            }
            added += usize::from(self.add(&key, SyncRequest::event(), now));
        }
        added
    }

    fn take(&mut self, now: Instant) -> Option<(Key, Duration)> {
        let edit_first = self.edits_in_a_row < EDITS_IN_A_ROW || self.events.is_empty();
        let key = if edit_first && !self.edits.is_empty() {
            self.edits_in_a_row += 1;
            self.edits.pop_front()
        } else {
            self.edits_in_a_row = 0;
            self.events.pop_front().or_else(|| self.edits.pop_front())
        }?;
        let entry = self.keys.get_mut(&key)?;
        let queued = entry.queued.take();
        let waited = queued.as_ref().map_or(Duration::ZERO, |queued| now - queued.since);
        let unseen = entry.unseen.take();
        let trigger = queued.and_then(|queued| queued.request.trigger).or(unseen);
        let is_extra = entry.pause.is_some_and(|pause| pause.awaits_retry(now));
        entry.processing = Some(Processing { since: now, is_extra, trigger });
        entry.dirty = None;
        Some((key, waited))
    }

    fn finish(&mut self, key: &Key, how: Finish, backoff: Backoff, now: Instant) -> Finished {
        let Some(entry) = self.keys.get_mut(key) else { return Finished::default() };
        let Some(Processing { since, is_extra, trigger }) = entry.processing.take() else {
            return Finished::default();
        };
        let dirty = entry.dirty.take();
        self.ended = Some(now);
        if how == Finish::Again {
            let first = SyncRequest { cause: Cause::Event, trigger };
            let queued = self.add(key, dirty.map_or(first.clone(), |later| first.or(later)), now);
            return Finished { queued, ..Finished::default() };
        }
        let is_edited = dirty.as_ref().is_some_and(|dirty| dirty.cause == Cause::Edit);
        let failures_before = entry.failures;
        let due = match how {
            Finish::Done | Finish::Again => entry.settle(None),
            Finish::After(delay, purpose) => entry.settle(Some(Due { at: after(now, delay), purpose })),
            Finish::Rest(delay) => entry.rest(after(now, delay)),
            // The spec was edited during the sync: the failure is about the old spec.
            Finish::Partly(_) | Finish::Retry if is_edited => entry.settle(None),
            Finish::Partly(apart) => Some(entry.fail(is_extra, after(now, apart), backoff, now)),
            Finish::Retry => Some(entry.fail(is_extra, after(now, EVENTS_APART), backoff, now)),
        };
        let retries = entry.failures > failures_before;
        if let Some(due) = due {
            self.set_timer(key, due, None);
        }
        let queued = dirty.is_some_and(|request| self.add(key, request, now));
        if self.keys.get(key).is_some_and(|entry| entry.is_idle(now)) {
            self.keys.remove(key);
            self.give_back();
        }
        Finished { took: Some(now - since), retries, queued }
    }
}

/// The end of a delay, which may come from an object's field and overflow the clock.
fn after(now: Instant, delay: Duration) -> Instant {
    const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(delay.min(FOREVER)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
