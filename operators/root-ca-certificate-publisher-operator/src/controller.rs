//! Which event wakes which namespace, and one sync on one screen.
//!
//! Left out: ConfigMaps of any other name, which the apiserver does not send.

use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::runtime::cache::{Cache, Change, Progress};
use shared::runtime::client::load_ca;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::flags::SharedFlags;
use shared::runtime::informer::InformerBuilder;
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};
use tokio::sync::watch;

use crate::apply::Writer;
use crate::flags::Flags;
use crate::metrics::SyncMetrics;
use crate::objects::{ConfigMap, Namespace};
use crate::observe::Sources;
use crate::observe::root_ca::RootCa;
use crate::plan::plan;

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
        let mut namespaces = InformerBuilder::<Namespace>::new().metadata_only().fields("status.phase=Active").build();
        let mut config_maps = InformerBuilder::<ConfigMap>::new().fields("metadata.name=kube-root-ca.crt").build();
        namespaces.on_change(enqueue_namespace(queue.clone()));
        config_maps.on_change(enqueue_namespace_of(queue.clone()));
        let file = flags.root_ca_file.0.clone();
        let ca = file.as_ref().map(|file| file.ca.clone()).or_else(|| own_ca(setup.flags()));
        let ca = Arc::new(RootCa::new(ca));
        if let Some(file) = file {
            let enqueue = enqueue_all(queue.clone(), namespaces.cache(), config_maps.cache());
            let root_ca = Arc::clone(&ca);
            // What was read with the flags is there already.
            let (_, ready) = watch::channel(Progress { synced: true, ..Progress::default() });
            setup.run("root-ca-file", ready, async move { root_ca.follow(file, enqueue).await });
        }
        let controller = PublisherController {
            sources: Sources { namespaces: namespaces.cache(), config_maps: config_maps.cache(), ca },
            writer: Writer { control: setup.control(&queue) },
            metrics: SyncMetrics::register(setup.metrics()),
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.watch(namespaces);
        setup.watch(config_maps);
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
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

/// Upstream: `namespaceAdded` and `namespaceUpdated`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.
fn enqueue_namespace(queue: Queue) -> impl Fn(Change<'_, Namespace>) {
    move |change| match change {
        Change::Added(namespace) | Change::Updated { new: namespace, .. } => {
            queue.add(&namespace.metadata.key, Cause::Event);
        }
        Change::Deleted(_) => {}
    }
}

/// Upstream: `configMapUpdated` and `configMapDeleted`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.
fn enqueue_namespace_of(queue: Queue) -> impl Fn(Change<'_, ConfigMap>) {
    move |change| queue.add(&Key::new("", change.latest().metadata.namespace()), Cause::Event)
}

/// For when something else is to be published: everywhere.
fn enqueue_all(queue: Queue, namespaces: Arc<Cache<Namespace>>, config_maps: Arc<Cache<ConfigMap>>) -> impl Fn() {
    move || {
        for namespace in namespaces.all() {
            queue.add(&namespace.metadata.key, Cause::Event);
        }
        // A namespace that is being deleted keeps the right CA, too.
        for config_map in config_maps.all() {
            queue.add(&Key::new("", config_map.metadata.namespace()), Cause::Event);
        }
    }
}

/// Syncs namespaces.
struct PublisherController {
    sources: Sources,
    writer: Writer,
    metrics: SyncMetrics,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for PublisherController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let started = self.clock.now();
        let plan = plan(&self.sources.observe(key));
        self.decisions.record(started, key, &plan);
        let outcome = self.writer.apply(key, &plan).await;
        let took = self.clock.now().duration_since(started).unsigned_abs();
        self.metrics.observe(&outcome, took);
        outcome.map(|()| Requeue::Done)
    }
}
