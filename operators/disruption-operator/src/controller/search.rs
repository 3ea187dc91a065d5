//! The controller of the search: one sync reads one page of pods.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::queue::Queue;
use shared::working::worker::{Controller, Requeue};

use crate::apply::stale::apply_search;
use crate::observe::Caches;
use crate::observe::search::live_page;
use crate::plan::stale::plan_search;

const PURPOSE: &str = "the next page of the search";

pub(super) struct SearchController {
    pub(super) caches: Arc<Caches>,
    pub(super) stale: Queue,
    pub(super) ctx: ControllerContext,
}

impl Controller for SearchController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_page(&self.caches.memory.next_page, self.ctx.control()).await?;
        let plan = plan_search(&observed, self.ctx.now());
        self.ctx.decide(key, &plan);
        Ok(Requeue::After(apply_search(plan, &self.stale), PURPOSE))
    }

    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
