//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NAMESPACES;
use shared::controllers::root_ca::RootCa;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::first_stage;
use shared::working::queue::{Backoff, Cause};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::{SyncMetrics, register};
use crate::objects::{CONFIG_MAPS, ROOT_CA_CONFIG_MAP};
use crate::observe::{Caches, Informers, live_config_map};
use crate::plan::{plan, plan_live_read};

/// Upstream's.
const WORKERS: usize = 1;

pub struct RootCaCertificatePublisherOperator;

impl Operator for RootCaCertificatePublisherOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut namespaces, mut config_maps }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        namespaces.on_change(effects.with(changes::namespace_changed));
        config_maps.on_change(effects.with(changes::config_map_changed));
        setup.watch(namespaces);
        setup.watch(config_maps);
        // Without a CA nothing is published, and each namespace's decision says so.
        let root_ca = RootCa::of_flags(&flags.root_ca_file, setup.flags());
        let (publishing, syncing) = (Arc::clone(&caches), queue.clone());
        root_ca.follow_flags(&flags.root_ca_file, setup, move || {
            for namespace in publishing.root_ca_changed() {
                syncing.add(&namespace, Cause::Event);
            }
        });
        let controller = PublisherController {
            caches,
            root_ca,
            writer: Writer { ctx: ctx.clone() },
            metrics: register(setup.metrics()),
            ctx,
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct PublisherController {
    caches: Arc<Caches>,
    root_ca: Arc<RootCa>,
    writer: Writer,
    metrics: SyncMetrics,
    ctx: ControllerContext,
}

impl Controller for PublisherController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let started = self.ctx.now();
        let result = self.publish(key).await;
        let took = self.ctx.now().duration_since(started).unsigned_abs();
        self.metrics.observe(&result, took);
        result.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        let published = object.key_of(&CONFIG_MAPS).filter(|key| key.name() == ROOT_CA_CONFIG_MAP);
        object.key_of(&NAMESPACES).or_else(|| published.map(|key| Key::new("", key.namespace())))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key, self.root_ca.current());
        vec![first_stage(plan_live_read(&observed), || plan(&observed))]
    }
}

impl PublisherController {
    /// Upstream: `syncNamespace`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.
    async fn publish(&self, key: &Key) -> anyhow::Result<()> {
        let observed = self.caches.observe(key, self.root_ca.current());
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.ctx.decide(key, &live_read);
                live_config_map(self.ctx.control(), observed).await?
            }
        };
        let plan = plan(&observed);
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await
    }
}
