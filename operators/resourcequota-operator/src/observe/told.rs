//! The kinds of which an event has told that they cannot be counted: it tells so once, until they can be again.
//!
//! Left out: anything that decides about usage. A kill loses this, and the event is told once more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::runtime::cache::Change;

use crate::objects::{Evaluator, ResourceQuota};

/// By quota.
#[derive(Default)]
pub struct Told(Mutex<BTreeMap<Key, BTreeSet<Evaluator>>>);

impl Told {
    /// Of this quota.
    pub fn of(&self, quota: &Key) -> BTreeSet<Evaluator> {
        self.all().get(quota).cloned().unwrap_or_default()
    }

    /// Notes the kinds that a quota cannot count now.
    pub fn set(&self, quota: &Key, kinds: BTreeSet<Evaluator>) {
        if kinds.is_empty() {
            self.all().remove(quota);
        } else {
            self.all().insert(quota.clone(), kinds);
        }
    }

    /// Forgets a quota that is gone.
    pub fn note(&self, change: &Change<'_, ResourceQuota>) {
        match change {
            Change::Added(_) | Change::Updated { .. } => {}
            Change::Deleted(quota) => {
                self.all().remove(&quota.metadata.key);
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeSet<Evaluator>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
