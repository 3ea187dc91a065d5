//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change enqueues which namespaces, which is in `changes`.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::NAMESPACES;
use shared::runtime::cache::Progress;
use shared::runtime::client::load_ca;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::flags::SharedFlags;
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};
use tokio::sync::watch;

use crate::apply::{Outcome, Writer};
use crate::flags::Flags;
use crate::metrics::SyncMetrics;
use crate::objects::{CONFIG_MAPS, ROOT_CA_CONFIG_MAP};
use crate::observe::root_ca::{RootCa, RootCaFile};
use crate::observe::{Caches, Informers, live_config_map};
use crate::plan::{plan, plan_live_read};

/// Upstream's.
const WORKERS: usize = 1;

/// The operator as a process.
pub struct RootCaCertificatePublisherOperator;

impl Operator for RootCaCertificatePublisherOperator {
    const NAMES: Names = Names {
        operator: "root-ca-certificate-publisher-operator",
        controller: "root-ca-certificate-publisher-controller",
        event_source: "root-ca-certificate-publisher-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue("root_ca_cert_publisher", Backoff::default());
        let control = setup.control(&queue);
        let (caches, Informers { mut namespaces, mut config_maps }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        namespaces.on_change(effects.of(&caches, Caches::namespace_changed));
        config_maps.on_change(effects.of(&caches, Caches::config_map_changed));
        setup.watch(namespaces);
        setup.watch(config_maps);
        let file = flags.root_ca_file.0.clone();
        let ca = file.as_ref().map(|file| file.ca.clone()).or_else(|| own_ca(setup.flags()));
        let root_ca = Arc::new(RootCa::new(ca));
        if let Some(file) = file {
            follow(setup, file, &root_ca, &caches, queue.clone());
        }
        let controller = PublisherController {
            caches,
            root_ca,
            writer: Writer { control },
            metrics: SyncMetrics::register(setup.metrics()),
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Follows the file, and enqueues all namespaces when it has changed.
fn follow(setup: &mut Setup, file: RootCaFile, root_ca: &Arc<RootCa>, caches: &Arc<Caches>, queue: Queue) {
    let (root_ca, caches) = (Arc::clone(root_ca), Arc::clone(caches));
    let changed = move || caches.root_ca_changed().iter().for_each(|namespace| queue.add(namespace, Cause::Event));
    // What was read with the flags is there already.
    let (_, ready) = watch::channel(Progress { synced: true, ..Progress::default() });
    setup.run("root-ca-file", ready, async move { root_ca.follow(file, changed).await });
}

/// The CA by which this process verifies the apiserver. Without any nothing is published, and each namespace's decision
/// says so.
fn own_ca(flags: &SharedFlags) -> Option<Text> {
    let loaded = load_ca(flags.kubeconfig(), flags.master());
    if let Err(error) = &loaded {
        tracing::warn!(%error, "cannot read the CA that verifies the apiserver");
    }
    loaded.ok().flatten().map(|ca| Text::new(&ca))
}

/// Syncs namespaces.
struct PublisherController {
    caches: Arc<Caches>,
    root_ca: Arc<RootCa>,
    writer: Writer,
    metrics: SyncMetrics,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for PublisherController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let started = self.clock.now();
        let result = self.publish(key).await;
        let took = self.clock.now().duration_since(started).unsigned_abs();
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
                self.decisions.record(self.clock.now(), key, &live_read);
                live_config_map(&self.writer.control, observed).await?
            }
        };
        let plan = plan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { error } = self.writer.apply(&observed, plan).await;
        error.map_or(Ok(()), Err)
    }
}
