//! Since when the owners of a budget's pods cannot be read. By uid, because a new budget of the same name has not failed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::object::Uid;

/// The first of the failures in a row, by budget.
#[derive(Default)]
pub struct Outages(Mutex<HashMap<Uid, Timestamp>>);

impl Outages {
    /// When the failures began, if one has just occurred. It is noted only for a budget that exists.
    pub fn since(&self, budget: Uid, now: Timestamp, exists: bool) -> Timestamp {
        if exists { *self.began().entry(budget).or_insert(now) } else { now }
    }

    pub fn forget(&self, budget: Uid) {
        self.began().remove(&budget);
    }

    fn began(&self) -> MutexGuard<'_, HashMap<Uid, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
