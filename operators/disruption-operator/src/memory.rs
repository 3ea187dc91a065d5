//! Memory between syncs. A restart loses it, which costs a sync or a status more.

pub mod decided;
pub mod evictions;
pub mod searches;

use shared::api::object::Key;
use shared::controllers::status_throttle::StatusThrottle;

use crate::objects::PodDisruptionBudget;
use decided::Decided;
use evictions::Evictions;
use searches::Searches;

/// What this operator remembers between syncs.
#[derive(Default)]
pub struct Memory {
    /// The status decided last, by budget.
    pub decided: Decided,
    /// The evictions noted in each budget.
    pub evictions: Evictions,
    /// When the status of each budget was written last.
    pub statuses: StatusThrottle,
    /// The progress of the searches.
    pub searches: Searches,
}

impl Memory {
    /// Note the newest state of a budget.
    pub fn note(&self, budget: &PodDisruptionBudget) {
        self.evictions.note(budget);
    }

    /// Forget a budget that is gone.
    pub fn forget(&self, budget: &Key) {
        self.decided.forget(budget);
        self.evictions.forget(budget);
        self.statuses.forget(budget);
    }

    /// Drop what belongs to the lost history after etcd was restored.
    pub fn start_over(&self) {
        self.decided.start_over();
        self.evictions.start_over();
        self.searches.start_over();
    }
}
