//! The status decided last for each budget. A budget that has exactly this status needs no sync: without this memory
//! every write would lead to a second sync, which reads the owners again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;

use crate::objects::BudgetStatus;

/// The last status of each budget.
#[derive(Default)]
pub struct Decided(Mutex<HashMap<Key, BudgetStatus>>);

impl Decided {
    /// Note a status before it is written, because its event may arrive before the answer.
    pub fn writes(&self, budget: &Key, status: BudgetStatus) {
        self.statuses().insert(budget.clone(), status);
    }

    pub fn is_last(&self, budget: &Key, status: &BudgetStatus) -> bool {
        self.statuses().get(budget) == Some(status)
    }

    pub fn forget(&self, budget: &Key) {
        self.statuses().remove(budget);
    }

    pub fn start_over(&self) {
        self.statuses().clear();
    }

    fn statuses(&self) -> MutexGuard<'_, HashMap<Key, BudgetStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
