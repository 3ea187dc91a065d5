//! The pending deletions, remembered between syncs, as upstream's timers: no object says when a pod was first seen with a
//! taint that it tolerates for a while. Another process starts these times again, as upstream.
//!
//! The memory has monotonic times, as upstream's timers: no step of the wall clock ends a toleration.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::following::informer::{Need, Needed};
use shared::transport::clock::instant;

/// Longer than any process runs, and short enough for every clock.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 100);

/// A deletion that was decided and has not succeeded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub uid: Uid,
    /// When it is due, by the wall clock of the observation.
    pub due: Timestamp,
    /// When the users' taints alone would end the pod; none if they never would.
    pub users: Option<Timestamp>,
    /// Whether it was due, and an event has announced it.
    pub is_announced: bool,
}

/// The pending deletions, by pod.
///
/// Upstream: `TimedWorkerQueue`, `pkg/controller/tainteviction/timed_workers.go`.
pub struct Evictions {
    need: Need,
    entries: Mutex<BTreeMap<Key, Entry>>,
}

struct Entry {
    uid: Uid,
    due: Instant,
    users: Option<Instant>,
    is_announced: bool,
    /// A deletion stays pending after the pod's node is gone, so the pod has to be followed until then.
    _needed: Needed,
}

impl Evictions {
    /// No pending deletions; the pods of each are followed through this need.
    pub(crate) fn new(need: Need) -> Self {
        Self { need, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pending deletion of a pod of this key, at this time.
    pub fn get(&self, pod: &Key, now: Timestamp) -> Option<Pending> {
        let (entries, at) = (self.entries(), instant());
        let Entry { uid, due, users, is_announced, _needed: _ } = entries.get(pod)?;
        let wall = |time: Instant| moved(now, time, at);
        Some(Pending { uid: *uid, due: wall(*due), users: users.map(wall), is_announced: *is_announced })
    }

    /// Whether a deletion of a pod of this key is pending.
    pub fn has(&self, pod: &Key) -> bool {
        self.entries().contains_key(pod)
    }

    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    pub(crate) fn remember(&self, pod: &Key, node: &str, pending: Pending, now: Timestamp) {
        let Pending { uid, due, users, is_announced } = pending;
        let (at, needed) = (instant(), self.need.hold(node));
        let steady = |time: Timestamp| steady(at, now, time);
        let entry = Entry { uid, due: steady(due), users: users.map(steady), is_announced, _needed: needed };
        drop(self.entries().insert(pod.clone(), entry));
    }

    pub(crate) fn forget(&self, pod: &Key) {
        drop(self.entries().remove(pod));
    }
}

/// `now`, moved by what lies between two instants.
fn moved(now: Timestamp, to: Instant, from: Instant) -> Timestamp {
    let later = now.checked_add(to.saturating_duration_since(from)).unwrap_or(Timestamp::MAX);
    later.checked_sub(from.saturating_duration_since(to)).unwrap_or(Timestamp::MIN)
}

/// The instant of a time of the wall clock that shows `now` at the instant `at`.
fn steady(at: Instant, now: Timestamp, time: Timestamp) -> Instant {
    let distance = now.duration_until(time);
    let moved = if distance.is_negative() {
        at.checked_sub(distance.unsigned_abs())
    } else {
        at.checked_add(distance.unsigned_abs().min(FOR_EVER))
    };
    moved.unwrap_or(at)
}
