//! The controller of searches: one sync reads a page of pods, and looks for those that something outside of them is about
//! to end, where pods are not followed.
//!
//! Left out: the decision about such a pod, which `stale_pods` makes when its time is over.

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
use crate::plan::stale::plan_search;

/// The first searches look for pods of the time in which no replica worked, and are in no hurry.
pub(super) const FIRST: Duration = Duration::from_mins(5);

/// The purpose of the timer.
pub(super) const PURPOSE: &str = "the next page of the search";

/// Looks for pods that are to be ended from outside.
pub(super) struct SearchController {
    pub(super) caches: Arc<Caches>,
    pub(super) control: Control,
    /// Where pods are looked at.
    pub(super) stale: Queue,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for SearchController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.caches.searches.live_page(&self.control, key).await?;
        let now = self.clock.now();
        let plan = plan_search(&observed, now);
        self.decisions.record(now, key, &plan);
        Ok(Requeue::After(apply_search(plan, &self.stale), PURPOSE))
    }

    /// It acts on no object.
    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    /// All of it is read live.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
