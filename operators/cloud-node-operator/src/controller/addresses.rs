//! One sync of the addresses of a node.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::working::context::ControllerContext;
use shared::working::worker::{Controller, Requeue};

use super::changes::AGAIN;
use crate::apply::Writer;
use crate::observe::{Caches, Reader};
use crate::plan::Config;
use crate::plan::addresses::next_addresses;

pub(super) struct AddressController {
    pub(super) config: Config,
    pub(super) caches: Arc<Caches>,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) ctx: ControllerContext,
}

impl Controller for AddressController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = |observed: &_| next_addresses(observed, &self.config);
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, |observed| self.reader.ask(observed)).await?;
        let again = plan.again;
        self.writer.apply_addresses(plan).await?;
        Ok(Requeue::earliest([again.map(|again| (again, AGAIN))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe(key).iter().map(|observed| next_addresses(observed, &self.config).stage()).collect()
    }
}
