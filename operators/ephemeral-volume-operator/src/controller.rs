//! The operator as a process, and one sync on one screen.

pub mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::ClaimMetrics;
use crate::observe::{Caches, Informers};
use crate::plan::plan;
use changes::pod_changed;

pub struct EphemeralVolumeOperator;

impl Operator for EphemeralVolumeOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut pods, mut persistent_volume_claims }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        pods.on_change(effects.with(pod_changed));
        persistent_volume_claims.on_change(effects.of(&caches, Caches::claim_changed));
        setup.watch(pods);
        setup.watch(persistent_volume_claims);
        let writer = Writer { ctx: ctx.clone(), metrics: ClaimMetrics::register(setup.metrics()) };
        let controller = EphemeralVolumeController { caches, writer, ctx };
        setup.work(Arc::new(controller), &queue, flags.concurrent_ephemeralvolume_syncs);
    }
}

struct EphemeralVolumeController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for EphemeralVolumeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let read = |_| self.caches.live_pod(self.ctx.control(), key);
        let (_, plan) = self.ctx.decide_in_stages(key, self.caches.observe(key), plan, read).await?;
        self.writer.apply(plan).await.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    /// Nothing for a pod without ephemeral volumes, or one that has started: most pods are such.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        let concerns_it = observed.pod.as_ref().is_some_and(|found| !found.volumes.is_empty());
        concerns_it.then(|| plan(&observed).stage()).into_iter().collect()
    }
}
