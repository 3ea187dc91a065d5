//! The operator as a process, and one sync on one screen.

pub mod changes;

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
use crate::objects::PERSISTENT_VOLUME_CLAIMS;
use crate::observe::{Caches, Informers};
use crate::plan::{Next, plan};
use changes::claim_changed;

/// Upstream's.
const WORKERS: usize = 1;

pub struct PersistentVolumeClaimProtectionOperator;

impl Operator for PersistentVolumeClaimProtectionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut persistent_volume_claims, mut pods }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        persistent_volume_claims.on_change(effects.with(claim_changed));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        let deletions = persistent_volume_claims.need(|claim| claim.metadata.is_being_deleted());
        setup.watch(persistent_volume_claims);
        setup.watch_beside(pods, &deletions);
        let controller = ProtectionController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct ProtectionController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ProtectionController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let read = |observed| self.caches.live_pods(self.ctx.control(), observed);
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(key, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PERSISTENT_VOLUME_CLAIMS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed));
        next.iter().map(Next::stage).collect()
    }
}
