//! One monitor for each kind that can be deleted, listed and watched; kinds come and go while the operator runs.
//!
//! If a kind cannot be listed, its monitor retries without stopping others, and proves nothing about its objects. A
//! kubelet renews its Lease every ten seconds, and the Lease is deleted with its Node: these Leases are not watched, but
//! listed when a Node was deleted.
//!
//! Upstream: `Sync`, `pkg/controller/garbagecollector/garbagecollector.go`, and `syncMonitors`, `graph_builder.go`.

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use prometheus_client::metrics::counter::Counter;
use shared::api::object::Key;
use shared::api::resource::{LEASES, NODES, Resource};
use shared::following::cache::Progress;
use shared::following::informer::{Feeder, Health, Running, Store};
use shared::transport::client::soon_after;
use shared::transport::discovery::Discovery;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::graph::Event;
use crate::objects::{ObjectKind, PartialObject};
use crate::observe::Caches;
use plan::{Plan, plan};

/// Upstream's: how often served resources are discovered, and how long to wait for the first lists of new monitors.
const PERIOD: Duration = Duration::from_secs(30);
/// The pause after a failed discovery.
const RETRY: Duration = Duration::from_secs(5);
/// Selects the watched Leases: those of kubelets have a namespace of their own.
const NOT_OF_NODES: &str = "metadata.namespace!=kube-node-lease";
/// How many new kinds are listed at a time, so that not all answers are in memory at once; and how long the next one waits
/// at most, because some may not answer at all.
const LISTS_AT_ONCE: usize = 4;
const LIST_WAIT: Duration = Duration::from_millis(100);
/// How long the apiserver takes to serve a new kind after its definition has changed.
const SETTLE: Duration = Duration::from_secs(2);

pub(super) struct Monitors {
    feeder: Feeder,
    caches: Arc<Caches>,
    running: BTreeMap<Resource, Running>,
    failed: BTreeMap<String, String>,
    definitions: Arc<Notify>,
    leases: Arc<LeaseMonitor>,
    ready: watch::Sender<Progress>,
    errors: Counter,
}

impl Monitors {
    /// No monitors yet. The receiver shows when the first ones are synced.
    pub(super) fn new(feeder: Feeder, caches: Arc<Caches>, errors: Counter) -> (Self, watch::Receiver<Progress>) {
        let (ready, is_ready) = watch::channel(Progress::default());
        let (running, failed, definitions, leases) = (BTreeMap::new(), BTreeMap::new(), Arc::default(), Arc::default());
        (Self { feeder, caches, running, failed, definitions, leases, ready, errors }, is_ready)
    }

    /// Starts and stops monitors as kinds come and go.
    pub(super) async fn run(mut self) {
        let mut came_back = self.feeder.came_back();
        loop {
            let Some(started) = self.follow_served().await else {
                tokio::select! {
                    () = sleep(RETRY) => {}
                    () = soon_after(&mut came_back) => {}
                }
                continue;
            };
            let was_ready = self.ready.borrow().synced;
            let is_redefined = tokio::select! {
                () = self.first_lists(&started) => false,
                // A new kind does not wait for one that cannot be listed.
                () = self.definitions.notified(), if was_ready => true,
            };
            if !self.running.is_empty() {
                self.ready.send_if_modified(|progress| !std::mem::replace(&mut progress.synced, true));
            }
            if !is_redefined && timeout(PERIOD, self.definitions.notified()).await.is_err() {
                continue;
            }
            sleep(SETTLE).await;
            // A failed list may work now.
            self.running.values().for_each(Running::retry);
        }
    }

    /// Waits until these are synced, for one period at most.
    async fn first_lists(&self, started: &[Resource]) {
        let monitors = || started.iter().filter_map(|resource| Some((resource, self.running.get(resource)?)));
        if timeout(PERIOD, join_all(monitors().map(|(_, monitor)| monitor.synced()))).await.is_err() {
            self.errors.inc();
            let unsynced = monitors().filter(|(_, monitor)| !monitor.is_synced());
            let unsynced: Vec<String> = unsynced.map(|(resource, _)| resource.to_string()).collect();
            tracing::warn!(?unsynced, "some kinds could not be listed in time; continuing without them");
        }
    }

    /// Returns the kinds whose monitors were started; none if the discovery failed.
    async fn follow_served(&mut self) -> Option<Vec<Resource>> {
        let discovery = match self.feeder.discover().await {
            Ok(discovery) => discovery,
            Err(error) => {
                self.errors.inc();
                tracing::warn!(%error, "discovery failed; keeping the monitors");
                return None;
            }
        };
        self.log_failed(&discovery);
        let running = self.running.iter().map(|(resource, monitor)| (resource, monitor.is_synced())).collect();
        let Some(Plan { start, stop }) = plan(&running, &discovery) else {
            self.errors.inc();
            return None;
        };
        self.caches.set_served(discovery);
        for resource in &stop {
            tracing::info!(%resource, version = &*resource.version, "monitor stopped");
            self.running.remove(resource);
            self.caches.kinds.monitor_stopped(resource);
        }
        let mut listing = FuturesUnordered::new();
        for resource in &start {
            tracing::debug!(%resource, version = &*resource.version, "monitor started");
            let monitor = self.start(resource);
            self.caches.kinds.monitor_started(resource, monitor.health());
            listing.push(monitor.synced());
            self.running.insert(resource.clone(), monitor);
            if listing.len() >= LISTS_AT_ONCE {
                let _ = timeout(LIST_WAIT, listing.next()).await;
            }
        }
        Some(start)
    }

    fn log_failed(&mut self, discovery: &Discovery) {
        if self.failed != discovery.failed {
            if let Some(failure) = discovery.failure() {
                tracing::warn!(%failure, "some groups cannot be discovered");
            } else {
                tracing::info!("all groups can be discovered again");
            }
            self.failed.clone_from(&discovery.failed);
        }
    }

    fn start(&self, resource: &Resource) -> Running {
        let defines_kinds = matches!(&*resource.plural, "customresourcedefinitions" | "apiservices");
        let store = GraphStore {
            caches: Arc::clone(&self.caches),
            kind: ObjectKind::of(resource),
            definitions: defines_kinds.then(|| Arc::clone(&self.definitions)),
            leases: is_of(resource, &NODES).then(|| Arc::clone(&self.leases)),
        };
        if !is_of(resource, &LEASES) {
            return self.feeder.follow_metadata(resource.clone(), store);
        }
        let monitor = self.feeder.follow_metadata_in_part(resource.clone(), NOT_OF_NODES, store);
        self.leases.set(monitor.health());
        monitor
    }
}

fn is_of(resource: &Resource, known: &Resource) -> bool {
    (&resource.group, &resource.plural) == (&known.group, &known.plural)
}

/// The monitor of Leases, if one runs.
#[derive(Default)]
struct LeaseMonitor(Mutex<Option<Arc<Health>>>);

impl LeaseMonitor {
    fn health(&self) -> MutexGuard<'_, Option<Arc<Health>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, monitor: Arc<Health>) {
        *self.health() = Some(monitor);
    }

    /// Lists all Leases again; several requests lead to one list.
    fn list(&self) {
        if let Some(monitor) = &*self.health() {
            monitor.relist();
        }
    }
}

/// Feeds the events of one monitor to the graph.
struct GraphStore {
    caches: Arc<Caches>,
    kind: Arc<ObjectKind>,
    /// Notified if objects of this kind define kinds.
    definitions: Option<Arc<Notify>>,
    /// Listed when an object of this kind was deleted, because Leases may depend on it.
    leases: Option<Arc<LeaseMonitor>>,
}

impl GraphStore {
    fn feed(&self, event: Event<'_>) {
        self.caches.update(event);
        if let Some(definitions) = &self.definitions {
            definitions.notify_one();
        }
    }

    fn list_leases(&self) {
        if let Some(leases) = &self.leases {
            leases.list();
        }
    }
}

impl Store<PartialObject> for GraphStore {
    fn apply(&self, object: Arc<PartialObject>) {
        self.feed(Event::Observed(&self.kind, &object));
    }

    fn delete(&self, last: Arc<PartialObject>) {
        self.feed(Event::Deleted(&self.kind, &last));
        self.list_leases();
    }

    fn delete_unread(&self, key: &Key) {
        self.feed(Event::DeletedUnread(&self.kind, key));
        self.list_leases();
    }

    fn reset(&self, live: Vec<Arc<PartialObject>>, unreadable: &BTreeMap<Key, String>) {
        let unreadable: BTreeSet<Key> = unreadable.keys().cloned().collect();
        self.caches.update(Event::Listed(&self.kind, &live, &unreadable));
        self.list_leases();
    }
}
