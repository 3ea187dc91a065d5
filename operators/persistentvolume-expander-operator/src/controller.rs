//! The operator as a process, and one sync on one screen.

pub mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PERSISTENT_VOLUME_CLAIMS;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers, live_volume};
use crate::plan::{Next, plan};
use changes::claim_changed;

/// Upstream's.
const WORKERS: usize = 10;

pub struct PersistentVolumeExpanderOperator;

impl Operator for PersistentVolumeExpanderOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut persistent_volume_claims }) = Caches::new();
        persistent_volume_claims.on_change(setup.effects(&queue).with(claim_changed));
        setup.watch(persistent_volume_claims);
        let controller = ExpanderController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct ExpanderController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ExpanderController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let read = |observed| live_volume(self.ctx.control(), observed);
        let (observed, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(&observed.claim, plan).await.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PERSISTENT_VOLUME_CLAIMS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed));
        next.iter().map(Next::stage).collect()
    }
}
