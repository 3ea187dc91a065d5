//! The work queue: each key once, never processed twice at the same time, waiting where it should wait.
//!
//! As client-go's (`util/workqueue`: dirty and processing sets, delays, per-key back-off), with three differences:
//! a failed key waits out its back-off whatever else happens to it, but an edit of its own spec ends the wait; edits
//! overtake the bulk of other events, which still get every fifth turn; and there is no bucket over all keys, so one
//! sick key never slows another.
//! Left out: what to do with a key (see [`crate::runtime::worker`]).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::api::object::Key;

/// Why a key is added, which decides whether it may overtake others or end a back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Something around the object changed, or the object was listed, or a timer fired.
    Event,
    /// Somebody changed what the object asks for: ends a back-off and goes first.
    Edit,
}

/// How long a key waits after its n-th failure in a row: `first`, doubled each time, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// The longest wait.
    pub max: Duration,
}

impl Default for Backoff {
    /// client-go's first wait of 5 ms, and at most 30 s.
    fn default() -> Self {
        Self { first: Duration::from_millis(5), max: Duration::from_secs(30) }
    }
}

impl Backoff {
    fn after(self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doubled).min(self.max)
    }
}

/// What the queue's metrics are told. Source: staging/src/k8s.io/client-go/util/workqueue/metrics.go.
pub trait Observer: Send + Sync {
    /// A key was added that was not waiting already.
    fn added(&self);
    /// This many keys wait to be taken.
    fn depth(&self, keys: usize);
    /// A key was taken after this wait.
    fn dequeued(&self, waited: Duration);
    /// A key was worked on for this long.
    fn worked(&self, took: Duration);
    /// A key is tried again after a failure.
    fn retried(&self);
}

/// How the work on a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Well: its failures are forgotten.
    Done,
    /// Well, and it is looked at again after this time, unless something adds it earlier.
    After(Duration),
    /// Well, and events of this time are looked at together once it has passed; an edit does not wait.
    Rest(Duration),
    /// It is tried again after its back-off.
    Retry,
    /// It was not worked on after all, and is taken again at once.
    Again,
}

/// A queue of keys; cheap to clone.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    name: &'static str,
    backoff: Backoff,
    observer: Option<Box<dyn Observer>>,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    keys: HashMap<Key, Entry>,
    edits: VecDeque<Key>,
    events: VecDeque<Key>,
    edits_in_a_row: u32,
    timers: BTreeSet<(Instant, Key)>,
    shut_down: bool,
}

#[derive(Default)]
struct Entry {
    queued: Option<Queued>,
    /// When the work on it began.
    processing: Option<Instant>,
    /// Added again while being processed.
    dirty: Option<Cause>,
    failures: u32,
    /// The end of its back-off, or of its rest.
    not_before: Option<Instant>,
    timer: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Queued {
    cause: Cause,
    since: Instant,
}

impl Entry {
    fn is_idle(&self, now: Instant) -> bool {
        let Self { queued, processing, dirty: _, failures, not_before, timer } = self;
        let may_work = not_before.is_none_or(|due| due <= now);
        queued.is_none() && processing.is_none() && *failures == 0 && timer.is_none() && may_work
    }
}

/// After so many edits in a row one other key goes first.
const EDITS_IN_A_ROW: u32 = 4;

impl Queue {
    /// An empty queue; `name` is upstream's, as in the metrics.
    pub fn new(name: &'static str, backoff: Backoff, observer: Option<Box<dyn Observer>>) -> Self {
        let (state, wake) = (Mutex::default(), Notify::new());
        Self { shared: Arc::new(Shared { name, backoff, observer, state, wake }) }
    }

    /// The queue's name.
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

    /// Adds a key. One that waits out a back-off, or rests, goes on waiting unless `cause` is an edit.
    pub fn add(&self, key: &Key, cause: Cause) {
        let mut state = self.state();
        let next = state.first_timer();
        let added = state.add(key, cause, Instant::now());
        self.tell_depth(&state, added);
        // A key that waits has a timer, which is nobody's yet if it is the first.
        let wakes = added || state.first_timer() != next;
        drop(state);
        if wakes {
            self.shared.wake.notify_one();
        }
    }

    /// Adds a key once `delay` has passed. Of several delays the earliest counts; [`Self::add`] does not cancel one.
    pub fn add_after(&self, key: &Key, delay: Duration) {
        if delay.is_zero() {
            return self.add(key, Cause::Event);
        }
        self.state().set_timer(key, after(Instant::now(), delay));
        self.shared.wake.notify_one();
    }

    /// Takes the next key, waiting for one; none after [`Self::shut_down`]. The caller owes a [`Self::finish`].
    pub async fn next(&self) -> Option<Key> {
        loop {
            let due = {
                let mut state = self.state();
                if state.shut_down {
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
                        // Somebody must watch over what is left while this caller works.
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

    /// Gives a key back.
    pub fn finish(&self, key: &Key, how: Finish) {
        let mut state = self.state();
        let finished = state.finish(key, how, self.shared.backoff, Instant::now());
        if let Some(took) = finished.took {
            self.observe(|observer| observer.worked(took));
        }
        if how == Finish::Retry {
            self.observe(|observer| observer.retried());
        }
        self.tell_depth(&state, finished.queued);
        drop(state);
        self.shared.wake.notify_one();
    }

    /// How often the key has failed in a row.
    pub fn failures(&self, key: &Key) -> u32 {
        self.state().keys.get(key).map_or(0, |entry| entry.failures)
    }

    /// The keys being processed, and for how long: for `unfinished_work_seconds` and `longest_running_processor_seconds`.
    pub fn running(&self) -> Vec<Duration> {
        let state = self.state();
        state.keys.values().filter_map(|entry| entry.processing).map(|since| since.elapsed()).collect()
    }

    /// How many keys wait to be taken.
    pub fn len(&self) -> usize {
        self.state().len()
    }

    /// Whether no key waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing is to be done before time passes or something is added: no key waits, is worked on, or has failed.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn is_at_rest(&self) -> bool {
        let (now, state) = (Instant::now(), self.state());
        state.keys.values().all(|entry| {
            let Entry { queued, processing, dirty: _, failures, not_before, timer } = entry;
            let rests = timer.is_some() && not_before.is_some_and(|due| due > now);
            queued.is_none() && processing.is_none() && *failures == 0 && !rests
        })
    }

    /// Ends the queue: everybody who waits in [`Self::next`] gets none.
    pub fn shut_down(&self) {
        self.state().shut_down = true;
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

struct Finished {
    took: Option<Duration>,
    queued: bool,
}

impl State {
    fn len(&self) -> usize {
        self.edits.len() + self.events.len()
    }

    fn first_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Gives whether the key waits in a lane and did not before.
    fn add(&mut self, key: &Key, cause: Cause, now: Instant) -> bool {
        if self.shut_down {
            return false;
        }
        let entry = self.keys.entry(key.clone()).or_default();
        if cause == Cause::Edit {
            entry.failures = 0;
            entry.not_before = None;
        }
        if entry.processing.is_some() {
            entry.dirty = entry.dirty.max(Some(cause));
            return false;
        }
        if let Some(due) = entry.not_before.filter(|due| *due > now) {
            self.set_timer(key, due);
            return false;
        }
        let is_new = entry.queued.is_none();
        match entry.queued {
            Some(queued) if queued.cause >= cause => return false,
            Some(queued) => {
                entry.queued = Some(Queued { cause, since: queued.since });
                self.events.retain(|waiting| waiting != key);
            }
            None => entry.queued = Some(Queued { cause, since: now }),
        }
        match cause {
            Cause::Edit => self.edits.push_back(key.clone()),
            Cause::Event => self.events.push_back(key.clone()),
        }
        is_new
    }

    fn set_timer(&mut self, key: &Key, due: Instant) {
        if self.shut_down {
            return;
        }
        let entry = self.keys.entry(key.clone()).or_default();
        match entry.timer {
            Some(earlier) if earlier <= due => return,
            Some(later) => {
                self.timers.remove(&(later, key.clone()));
            }
            None => {}
        }
        entry.timer = Some(due);
        self.timers.insert((due, key.clone()));
    }

    /// Gives how many keys it put into a lane.
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
            added += usize::from(self.add(&key, Cause::Event, now));
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
        let waited = entry.queued.take().map_or(Duration::ZERO, |queued| now - queued.since);
        entry.processing = Some(now);
        entry.dirty = None;
        Some((key, waited))
    }

    fn finish(&mut self, key: &Key, how: Finish, backoff: Backoff, now: Instant) -> Finished {
        let Some(entry) = self.keys.get_mut(key) else { return Finished { took: None, queued: false } };
        let took = entry.processing.take().map(|since| now - since);
        let dirty = entry.dirty.take();
        match how {
            Finish::Done => (entry.failures, entry.not_before) = (0, None),
            Finish::After(delay) => {
                (entry.failures, entry.not_before) = (0, None);
                self.set_timer(key, after(now, delay));
            }
            Finish::Rest(delay) => (entry.failures, entry.not_before) = (0, Some(after(now, delay))),
            Finish::Again => {
                let queued = self.add(key, dirty.unwrap_or(Cause::Event), now);
                return Finished { took: None, queued };
            }
            // An edit came in the meantime: what failed is not what is asked for now.
            Finish::Retry if dirty == Some(Cause::Edit) => (entry.failures, entry.not_before) = (1, None),
            Finish::Retry => {
                entry.failures = entry.failures.saturating_add(1);
                let due = after(now, backoff.after(entry.failures));
                entry.not_before = Some(due);
                self.set_timer(key, due);
            }
        }
        let queued = dirty.is_some_and(|cause| self.add(key, cause, now));
        if self.keys.get(key).is_some_and(|entry| entry.is_idle(now)) {
            self.keys.remove(key);
        }
        Finished { took, queued }
    }
}

/// The end of a delay. One that comes from an object's field may be longer than any clock counts.
fn after(now: Instant, delay: Duration) -> Instant {
    const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(delay.min(FOREVER)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
