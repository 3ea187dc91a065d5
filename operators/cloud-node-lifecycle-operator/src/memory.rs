//! The nodes whose instance the provider did not know when it was asked, remembered between syncs.
//!
//! A process that begins to work has asked nobody yet, so each node takes two answers to this process.
//!
//! The memory has monotonic times: no step of the wall clock brings the two answers closer together or further apart.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use shared::api::object::{Key, Uid};

/// Since when the provider has said, each time that it was asked, that it does not know a node.
#[derive(Default)]
pub struct Absences(Mutex<BTreeMap<Key, (Uid, Instant)>>);

impl Absences {
    /// Since when, by the wall clock that shows `now` at the instant `at`.
    pub fn since(&self, node: &Key, uid: Uid, (now, at): (Timestamp, Instant)) -> Option<Timestamp> {
        let (_, since) = self.nodes().get(node).copied().filter(|(of, _)| *of == uid)?;
        Some(now.checked_sub(at.saturating_duration_since(since)).unwrap_or(Timestamp::MIN))
    }

    pub(crate) fn has(&self, node: &Key, uid: Uid) -> bool {
        self.nodes().get(node).is_some_and(|(of, _)| *of == uid)
    }

    /// The first answer in a row counts.
    pub fn note(&self, node: &Key, uid: Uid, at: Instant) {
        let mut nodes = self.nodes();
        if nodes.get(node).is_none_or(|(of, _)| *of != uid) {
            nodes.insert(node.clone(), (uid, at));
        }
    }

    pub fn forget(&self, node: &Key) {
        self.nodes().remove(node);
    }

    pub(crate) fn forget_all(&self) {
        self.nodes().clear();
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<Key, (Uid, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
