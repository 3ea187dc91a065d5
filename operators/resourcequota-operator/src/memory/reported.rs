//! The kinds that an event has reported as not countable. Each is reported once, until it can be counted again; a restart
//! may repeat the event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::following::cache::Change;

use crate::objects::{Evaluator, ResourceQuota};

/// The reported kinds by quota.
#[derive(Default)]
pub struct Reported(Mutex<BTreeMap<Key, BTreeSet<Evaluator>>>);

impl Reported {
    pub fn of(&self, quota: &Key) -> BTreeSet<Evaluator> {
        self.all().get(quota).cloned().unwrap_or_default()
    }

    /// Stores the kinds that a quota cannot count now.
    pub fn set(&self, quota: &Key, kinds: BTreeSet<Evaluator>) {
        if kinds.is_empty() {
            self.all().remove(quota);
        } else {
            self.all().insert(quota.clone(), kinds);
        }
    }

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
