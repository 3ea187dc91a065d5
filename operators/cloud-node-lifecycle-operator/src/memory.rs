//! The nodes whose instance the provider did not know when it was asked, remembered between syncs.
//!
//! A process that begins to work has asked nobody yet, so each node takes two answers to this process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::object::{Key, Uid};

/// Since when the provider has said, each time that it was asked, that it does not know a node.
#[derive(Default)]
pub struct Absences(Mutex<BTreeMap<Key, (Uid, Timestamp)>>);

impl Absences {
    pub fn since(&self, node: &Key, uid: Uid) -> Option<Timestamp> {
        self.nodes().get(node).filter(|(of, _)| *of == uid).map(|(_, since)| *since)
    }

    /// The first answer in a row counts.
    pub fn note(&self, node: &Key, uid: Uid, now: Timestamp) {
        let mut nodes = self.nodes();
        if nodes.get(node).is_none_or(|(of, _)| *of != uid) {
            nodes.insert(node.clone(), (uid, now));
        }
    }

    pub fn forget(&self, node: &Key) {
        self.nodes().remove(node);
    }

    pub(crate) fn forget_all(&self) {
        self.nodes().clear();
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<Key, (Uid, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
