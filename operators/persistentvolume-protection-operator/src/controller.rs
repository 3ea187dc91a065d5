//! The operator as a process, and one sync on one screen.

pub mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PERSISTENT_VOLUMES;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers, live_volume};
use crate::plan::{Next, plan};
use changes::persistent_volume_changed;

/// Upstream's.
const WORKERS: usize = 1;

pub struct PersistentVolumeProtectionOperator;

impl Operator for PersistentVolumeProtectionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut persistent_volumes }) = Caches::new();
        persistent_volumes.on_change(setup.effects(&queue).with(persistent_volume_changed));
        setup.watch(persistent_volumes);
        let controller = ProtectionController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct ProtectionController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ProtectionController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let read = |observed| live_volume(self.ctx.control(), observed);
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(key, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PERSISTENT_VOLUMES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed));
        next.iter().map(Next::stage).collect()
    }
}
