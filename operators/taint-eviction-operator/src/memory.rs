//! The pending deletions, remembered between syncs, as upstream's timers: no object says when a pod was first seen with a
//! taint that it tolerates for a while. Another process starts these times again, as upstream.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::runtime::informer::{Need, Needed};

/// A deletion that was decided and has not succeeded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The pod.
    pub uid: Uid,
    /// When it is due.
    pub due: Timestamp,
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
    pending: Pending,
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

    /// The pending deletion of a pod of this key.
    pub fn get(&self, pod: &Key) -> Option<Pending> {
        self.entries().get(pod).map(|entry| entry.pending)
    }

    /// Whether no deletion is pending.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Sets the pending deletion of a pod on this node.
    pub(crate) fn remember(&self, pod: &Key, node: &str, pending: Pending) {
        let entry = Entry { pending, _needed: self.need.hold(node) };
        drop(self.entries().insert(pod.clone(), entry));
    }

    /// Drops the pending deletion of a pod of this key.
    pub(crate) fn forget(&self, pod: &Key) {
        drop(self.entries().remove(pod));
    }
}
