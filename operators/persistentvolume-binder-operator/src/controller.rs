//! The operator as a process, and a sync of a claim and of a volume on one screen.

pub mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES};
use shared::following::cache::Change;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::{BinderMetrics, Counts};
use crate::objects::recycler::Recyclers;
use crate::observe::{Caches, Informers, Observed, ObservedVolume, named_volume, volume_and_claim};
use crate::plan::{Config, claim, recycle, volume};

/// Upstream's, of each queue: several at a time would choose the same volumes and meet conflicts.
const WORKERS: usize = 1;

/// What selects the pod of a volume, and the events about it, before the name of the volume.
const RECYCLER_POD: &str = "metadata.name=recycler-for-";
const EVENTS_OF_RECYCLER_POD: &str = "involvedObject.name=recycler-for-";

pub struct PersistentVolumeBinderOperator;

impl Operator for PersistentVolumeBinderOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let of_claims = setup.queue(facts::CLAIMS.name, Backoff::default());
        let of_volumes = setup.queue(facts::VOLUMES.name, Backoff::default());
        let (caches, informers) = Caches::new(Recyclers::from(flags));
        let (caches, config) = (Arc::new(caches), Config::from(flags));
        let Informers {
            mut persistent_volume_claims,
            mut persistent_volumes,
            mut storage_classes,
            pods,
            mut recycling,
            waiting,
            waiting_in,
        } = informers;
        let remembering = Arc::clone(&caches);
        setup.on_restore(move || remembering.memory.forget_all());
        let (to_claims, to_volumes) = (setup.effects(&of_claims), setup.effects(&of_volumes));
        persistent_volume_claims.on_change(to_claims.with(changes::claim_changed));
        persistent_volume_claims.on_change(to_volumes.of(&caches, Caches::claim_of_volumes_changed));
        // A standby remembers what it will need.
        let noting = Arc::clone(&caches);
        persistent_volumes.on_change_at_any_time(move |change| noting.memory.note_restore(change));
        let noting = Arc::clone(&caches);
        persistent_volumes.on_change(move |change| noting.note_volume(change));
        persistent_volumes.on_change(to_volumes.of(&caches, Caches::volume_changed));
        persistent_volumes.on_change(to_claims.of(&caches, Caches::volume_of_claims_changed));
        storage_classes.on_change(to_claims.of(&caches, Caches::class_changed));
        recycling.pods.on_change(to_volumes.of(&caches, Caches::recycler_changed));
        recycling.events.on_change(to_volumes.of(&caches, Caches::pod_event_came));
        let metrics = BinderMetrics::register(setup.metrics());
        let (claim_ctx, volume_ctx) = (setup.context(&of_claims), setup.context(&of_volumes));
        let (counting, ctx) = (metrics.clone(), volume_ctx.clone());
        persistent_volumes.on_change(move |change| {
            if let Change::Deleted(volume) = change {
                counting.deleted(volume, ctx.now());
            }
        });
        setup.watch(persistent_volume_claims);
        setup.watch(persistent_volumes);
        setup.watch_while(storage_classes, &waiting);
        setup.watch_beside(pods, &waiting_in);
        setup.watch_selected(recycling.pods, &recycling.need, RECYCLER_POD);
        setup.watch_selected(recycling.events, &recycling.need, EVENTS_OF_RECYCLER_POD);
        setup.metrics().register_collector(Counts::new(&caches));
        let writer = |ctx: &ControllerContext| Writer {
            ctx: ctx.clone(),
            caches: Arc::clone(&caches),
            claims: of_claims.clone(),
            sync_period: config.sync_period,
            metrics: metrics.clone(),
        };
        let volumes =
            VolumeController { caches: Arc::clone(&caches), writer: writer(&volume_ctx), ctx: volume_ctx.clone() };
        let claims =
            ClaimController { caches: Arc::clone(&caches), writer: writer(&claim_ctx), config, ctx: claim_ctx.clone() };
        setup.work(Arc::new(claims), &of_claims, WORKERS);
        setup.work(Arc::new(volumes), &of_volumes, WORKERS);
    }
}

struct ClaimController {
    caches: Arc<Caches>,
    writer: Writer,
    config: Config,
    ctx: ControllerContext,
}

impl Controller for ClaimController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_claim(key) else { return Ok(Requeue::Done) };
        let plan = |observed: &Observed| claim::plan(observed, self.config);
        let read = |observed| named_volume(self.ctx.control(), observed);
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(key, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PERSISTENT_VOLUME_CLAIMS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe_claim(key);
        observed.iter().map(|observed| claim::plan(observed, self.config).stage()).collect()
    }
}

struct VolumeController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for VolumeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_volume(key) else {
            let Some(recycler) = self.caches.memory.recycler(key) else { return Ok(Requeue::Done) };
            let plan = recycle::gone(recycler);
            self.ctx.decide(key, &plan);
            return self.writer.apply(key, plan).await;
        };
        let plan = |observed: &ObservedVolume| volume::plan(observed, &self.caches.recyclers);
        let read = |observed| volume_and_claim(self.ctx.control(), observed);
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(key, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PERSISTENT_VOLUMES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe_volume(key);
        observed.iter().map(|observed| volume::plan(observed, &self.caches.recyclers).stage()).collect()
    }
}
