//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::STORAGE_VERSIONS;
use crate::observe::{Caches, Informers};
use crate::plan::{Next, plan};
use crate::status::next_status;

/// Upstream's.
const WORKERS: usize = 1;

pub struct StorageVersionGarbageCollectorOperator;

impl Operator for StorageVersionGarbageCollectorOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut storage_versions, mut leases }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        storage_versions.on_change(effects.of(&caches, Caches::storage_version_changed));
        leases.on_change(effects.of(&caches, Caches::lease_changed));
        let existing = storage_versions.need(|_| true);
        setup.watch_while_served(storage_versions);
        setup.watch_while(leases, &existing);
        let controller = StorageVersionController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct StorageVersionController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for StorageVersionController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let read = |observed| self.caches.live(self.ctx.control(), observed);
        let (observed, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        let outcome = self.writer.apply(&observed, plan).await?;
        if let Some(object) = next_status(&observed, &outcome, self.ctx.now()) {
            self.writer.write_status(&observed, &object).await?;
        }
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&STORAGE_VERSIONS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed));
        next.iter().map(Next::stage).collect()
    }
}
