//! The controller of Services that get their addresses from pools: its wiring, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::Setup;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::pools::PoolsWriter;
use crate::objects::SERVICES;
use crate::observe::pools::{Caches, Informers, Observed};
use crate::plan::pools::{PoolsPlan, plan};

/// One, because a sync decides from what the others have given.
const WORKERS: usize = 1;

/// Wires the controller for pools that are in this ConfigMap.
pub(super) fn set_up(config_map: &Key, setup: &mut Setup, queue: &Queue) {
    let ctx = setup.context(queue);
    let (caches, Informers { mut services, mut config_maps, mut namespaces }) = Caches::new(config_map);
    let caches = Arc::new(caches);
    let effects = setup.effects(queue);
    // A standby follows the addresses too: it answers `/why`, and gives none twice when it takes over.
    let noting = Arc::clone(&caches);
    services.on_change_at_any_time(move |change| noting.memory.note(&change));
    services.on_change(effects.of(&caches, Caches::pooled_service_changed));
    config_maps.on_change(effects.of(&caches, Caches::pools_changed));
    let telling = ctx.clone();
    config_maps
        .on_change(move |change| changes::pool_faults(change).into_iter().for_each(|event| telling.event(event)));
    namespaces.on_change(effects.of(&caches, Caches::namespace_changed));
    let selecting = config_maps.need(|config_map| config_map.pools.select_namespaces());
    setup.watch(services);
    setup.watch(config_maps);
    setup.watch_while(namespaces, &selecting);
    let (forgetting, again) = (Arc::clone(&caches), queue.clone());
    setup.on_restore(move || {
        forgetting.memory.forget_given();
        // They may get what is free now.
        forgetting.memory.waiting().iter().for_each(|key| again.add(key, Cause::Event));
    });
    let writer = PoolsWriter { ctx: ctx.clone(), caches: Arc::clone(&caches) };
    setup.work(Arc::new(PoolsController { caches, writer, ctx }), queue, WORKERS);
}

struct PoolsController {
    caches: Arc<Caches>,
    writer: PoolsWriter,
    ctx: ControllerContext,
}

impl PoolsController {
    fn decide(&self, key: &Key) -> Option<(Observed, PoolsPlan)> {
        let observed = self.caches.observe(key)?;
        let plan = self.caches.memory.decide(|allocations| plan(&observed, allocations));
        Some((observed, plan))
    }
}

impl Controller for PoolsController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed.service, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SERVICES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}
