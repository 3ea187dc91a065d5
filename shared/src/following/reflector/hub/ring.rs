//! The last events of a shared watch, and how far each subscriber has read them.
//!
//! Subscribers read at their own pace and share the events. A subscriber that falls too far behind loses its place and
//! resumes with a watch of its own, so that a slow one costs the others no memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::api::object::ResourceVersion;
use crate::following::reflector::Stop;
use crate::following::reflector::wire;

/// How many bytes of events may wait for the slowest subscriber.
pub(super) const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many bytes of events that all have read are kept for a subscriber whose list ends meanwhile.
pub(super) const READ_BYTES_MAX: usize = 256 * 1024;

pub(super) struct SharedWatch {
    asked: Instant,
    limit: Duration,
    ring: Mutex<Ring>,
    changed: watch::Sender<()>,
}

struct Ring {
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the first of these events.
    first: u64,
    /// The version before the first of these events; a subscriber that knows less cannot join.
    base: ResourceVersion,
    /// The number of the next event of each subscriber that has not fallen behind.
    positions: BTreeMap<u64, u64>,
    subscribers: u64,
    begun: Option<Instant>,
    has_ended: bool,
    /// The reason of the end, for the subscriber that opened the watch.
    reason: Option<Stop>,
    reading: Option<AbortHandle>,
}

impl Ring {
    fn subscribe(&mut self) -> u64 {
        let number = self.subscribers;
        self.subscribers += 1;
        self.positions.insert(number, self.first);
        number
    }

    /// The next event of a subscriber, or the end of the watch for it; none if it has to wait.
    fn next(&mut self, subscriber: u64) -> Option<Result<Option<Bytes>, Stop>> {
        let Some(position) = self.positions.get_mut(&subscriber) else { return Some(Err(Stop::Behind)) };
        let at = usize::try_from(*position - self.first).unwrap_or(usize::MAX);
        if let Some(event) = self.events.get(at) {
            *position += 1;
            return Some(Ok(Some(event.clone())));
        }
        self.has_ended.then(|| self.reason_for(subscriber).map_or(Ok(None), Err))
    }

    fn reason_for(&mut self, subscriber: u64) -> Option<Stop> {
        if subscriber == OPENER { self.reason.take() } else { None }
    }

    fn end(&mut self, reason: Option<Stop>) {
        if !self.has_ended {
            (self.has_ended, self.reason) = (true, reason);
        }
    }

    fn push(&mut self, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back(event);
        self.trim();
    }

    /// Drops events that all have read, and the oldest ones if too many wait. It frees half of the room at once, because
    /// the last dropped event is parsed for its version.
    fn trim(&mut self) {
        let half_of = |max: usize| if self.bytes > max { max / 2 } else { max };
        let (read_max, waiting_max) = (half_of(READ_BYTES_MAX), half_of(WAITING_BYTES_MAX));
        let read = self.positions.values().min().copied().unwrap_or(u64::MAX);
        let mut dropped = None;
        while self.bytes > if self.first < read { read_max } else { waiting_max } {
            // The newest event is kept whatever its size.
            if self.events.len() < 2 {
                break;
            }
            dropped = self.events.pop_front();
            self.bytes -= dropped.as_ref().map_or(0, Bytes::len);
            self.first += 1;
        }
        if let Some(event) = dropped {
            // After an event without a readable version no subscriber can join.
            self.base = wire::version(&event).unwrap_or(ResourceVersion(u64::MAX));
            self.positions.retain(|_, position| *position >= self.first);
        }
    }
}

/// The subscriber that opened the watch.
const OPENER: u64 = 0;

impl SharedWatch {
    /// A watch from this version on that is requested now, and its first subscriber.
    pub(super) fn open(version: ResourceVersion, limit: Duration) -> (Arc<Self>, Subscription) {
        let ring = Ring {
            events: VecDeque::new(),
            bytes: 0,
            first: 0,
            base: version,
            positions: BTreeMap::new(),
            subscribers: OPENER,
            begun: None,
            has_ended: false,
            reason: None,
            reading: None,
        };
        let watch =
            Arc::new(Self { asked: Instant::now(), limit, ring: Mutex::new(ring), changed: watch::Sender::new(()) });
        let number = watch.ring().subscribe();
        let subscription = watch.subscription(number);
        (watch, subscription)
    }

    /// A subscriber that knows everything up to this version; none if later events have been dropped.
    pub(super) fn join(self: &Arc<Self>, version: ResourceVersion) -> Option<Subscription> {
        let mut ring = self.ring();
        if version < ring.base || ring.has_ended {
            return None;
        }
        let number = ring.subscribe();
        drop(ring);
        Some(self.subscription(number))
    }

    fn subscription(self: &Arc<Self>, number: u64) -> Subscription {
        Subscription { watch: Arc::clone(self), number, changed: self.changed.subscribe() }
    }

    pub(super) fn asked(&self) -> Instant {
        self.asked
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ring().has_ended
    }

    /// Notes the task that reads it, which ends with the last subscriber.
    pub(super) fn is_read_by(&self, task: AbortHandle) {
        self.ring().reading = Some(task);
    }

    fn end(&self, reason: Option<Stop>) {
        self.ring().end(reason);
        self.changed.send_replace(());
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reader of a shared watch, which ends the watch when it is dropped.
pub(super) struct Ending(Arc<SharedWatch>);

impl Ending {
    pub(super) fn of(watch: &Arc<SharedWatch>) -> Self {
        Self(Arc::clone(watch))
    }

    pub(super) fn begins(&self) {
        self.0.ring().begun = Some(Instant::now());
        self.0.changed.send_replace(());
    }

    /// Adds an event, in memory of its own: a large body would otherwise be kept with it.
    pub(super) fn push(&self, event: &[u8]) {
        self.0.ring().push(Bytes::copy_from_slice(event));
        self.0.changed.send_replace(());
    }

    pub(super) fn end(self, reason: Option<Stop>) {
        self.0.end(reason);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

/// One reader of a shared watch. The last one that is dropped ends the watch.
pub(in crate::following::reflector) struct Subscription {
    watch: Arc<SharedWatch>,
    number: u64,
    changed: watch::Receiver<()>,
}

impl Subscription {
    /// Waits until the watch has begun, and returns when that was. If it cannot begin, only the subscriber that opened it
    /// gets the error; the others try with their own accounts.
    pub(in crate::following::reflector) async fn begun(&mut self) -> Result<Instant, Stop> {
        loop {
            self.changed.mark_unchanged();
            {
                let mut ring = self.watch.ring();
                if let Some(begun) = ring.begun {
                    return Ok(begun);
                }
                if ring.has_ended {
                    return Err(ring.reason_for(self.number).unwrap_or(Stop::Ended));
                }
            }
            self.changes().await;
        }
    }

    pub(in crate::following::reflector) fn limit(&self) -> Duration {
        self.watch.limit
    }

    pub(in crate::following::reflector) async fn next(&mut self) -> Result<Option<Bytes>, Stop> {
        loop {
            self.changed.mark_unchanged();
            let next = self.watch.ring().next(self.number);
            if let Some(next) = next {
                return next;
            }
            self.changes().await;
        }
    }

    async fn changes(&mut self) {
        // The sender lives as long as this subscription.
        let _ = self.changed.changed().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut ring = self.watch.ring();
        ring.positions.remove(&self.number);
        if !ring.positions.is_empty() {
            return;
        }
        ring.end(None);
        ring.events.clear();
        let reading = ring.reading.take();
        drop(ring);
        if let Some(reading) = reading {
            reading.abort();
        }
    }
}
