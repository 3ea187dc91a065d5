//! Which status this process decided last for each budget: a budget that has exactly that needs no sync.
//!
//! Without this each write would be followed by a second sync, which asks the owners again. Everything else that a sync
//! reads has events of its own: pods, and the budget's spec. Left out: anything that decides. A kill loses this, and a
//! sync more finds nothing to do.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::runtime::cache::Change;

use crate::objects::{BudgetStatus, PodDisruptionBudget};

/// The last status of each budget.
#[derive(Default)]
pub struct Decided(Mutex<HashMap<Key, BudgetStatus>>);

impl Decided {
    /// Notes a status that is about to be written: its event may come before the answer.
    pub fn writes(&self, budget: &Key, status: BudgetStatus) {
        self.statuses().insert(budget.clone(), status);
    }

    /// Whether this is the status that was decided last.
    pub fn is_last(&self, budget: &Key, status: &BudgetStatus) -> bool {
        self.statuses().get(budget) == Some(status)
    }

    /// Forgets a budget that is gone.
    pub fn note(&self, change: &Change<'_, PodDisruptionBudget>) {
        match change {
            Change::Added(_) | Change::Updated { .. } => {}
            Change::Deleted(budget) => {
                self.statuses().remove(&budget.metadata.key);
            }
        }
    }

    /// Forgets all: of a restored etcd nothing was decided here.
    pub fn start_over(&self) {
        self.statuses().clear();
    }

    fn statuses(&self) -> MutexGuard<'_, HashMap<Key, BudgetStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
