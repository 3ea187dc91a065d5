//! The controller of searches: one sync reads one page of pods.

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::control::Control;
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::Queue;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::stale::apply_search;
use crate::observe::Caches;
use crate::observe::search::live_page;
use crate::plan::stale::plan_search;

/// The delay of the first searches.
pub(super) const FIRST: Duration = Duration::from_mins(5);

/// The purpose of the timer.
pub(super) const PURPOSE: &str = "the next page of the search";

/// Searches for pods with the condition DisruptionTarget.
pub(super) struct SearchController {
    pub(super) caches: Arc<Caches>,
    pub(super) control: Control,
    /// The queue of these pods.
    pub(super) stale: Queue,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for SearchController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_page(&self.caches.memory.searches, &self.control, key).await?;
        let now = self.clock.now();
        let plan = plan_search(&observed, now);
        self.decisions.record(now, key, &plan);
        Ok(Requeue::After(apply_search(plan, &self.stale), PURPOSE))
    }

    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
