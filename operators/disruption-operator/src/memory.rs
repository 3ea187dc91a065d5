//! Memory between syncs. A restart loses it, which costs a sync or a status more.

pub mod decided;
pub mod evictions;
pub mod next_page;
pub mod outages;
pub mod scales;

use shared::controllers::status_throttle::StatusThrottle;

use crate::objects::PodDisruptionBudget;
use decided::Decided;
use evictions::Evictions;
use next_page::NextPage;
use outages::Outages;
use scales::RecentScales;

#[derive(Default)]
pub struct Memory {
    /// The status decided last, by budget.
    pub decided: Decided,
    pub evictions: Evictions,
    /// When the status of each budget was written last.
    pub statuses: StatusThrottle,
    /// The scales read last, by owner.
    pub scales: RecentScales,
    /// The budgets whose owners cannot be read.
    pub outages: Outages,
    pub next_page: NextPage,
}

impl Memory {
    pub fn note(&self, budget: &PodDisruptionBudget) {
        self.evictions.note(budget);
    }

    pub fn forget(&self, budget: &PodDisruptionBudget) {
        let key = &budget.metadata.key;
        self.decided.forget(key);
        self.evictions.forget(key);
        self.statuses.forget(key);
        self.outages.forget(budget.metadata.uid);
    }

    pub fn start_over(&self) {
        self.decided.start_over();
        self.evictions.start_over();
        self.scales.start_over();
        self.next_page.start_over();
    }
}
