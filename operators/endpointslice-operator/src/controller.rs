//! Wiring, one sync of a Service, and one look at the zones after a node has changed.
//!
//! Left out: which change wakes which Service, which is `changes`'.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::informer::{Informer, InformerBuilder};
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::flags::Flags;
use crate::metrics::{EndpointSliceMetrics, results};
use crate::objects::{EndpointSlice, MANAGED_BY, Node, Pod, Service, labels};
use crate::observe::tracker::Tracker;
use crate::observe::{Sources, first_of_selector, service_value};
use crate::plan::{Config, Plan, plan};

/// A Service that fails is not looked at again for a second: one change of it may be many writes.
///
/// Upstream: `defaultSyncBackOff`, `pkg/controller/endpointslice/endpointslice_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

/// How long a change of a slice waits at least, for others to come.
///
/// Upstream: `endpointSliceChangeMinSyncDelay`, `endpointslice_controller.go`.
const SLICE_CHANGE_DELAY: Duration = Duration::from_secs(1);

/// Pods that have ended are endpoints of nothing, and need not be known.
const LIVING_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The operator as a process.
pub struct EndpointSliceOperator;

impl Operator for EndpointSliceOperator {
    const NAMES: Names = Names {
        operator: "endpointslice-operator",
        controller: "endpointslice-controller",
        event_source: "endpoint-slice-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue("endpoint_slice", BACKOFF);
        let zones = setup.queue("endpoint_slice_topology", Backoff::default());
        let (sources, informers) = follow();
        let sources = Arc::new(sources);
        let Informers { mut services, mut pods, mut nodes, mut slices } = informers;

        let tracker = Arc::clone(&sources.tracker);
        setup.on_restore(move || tracker.start_over());
        let metrics = EndpointSliceMetrics::register(setup.metrics(), flags.max_endpoints_per_slice);
        let writer = Writer {
            control: setup.control(&queue),
            recorder: setup.recorder(),
            metrics,
            slices: slices.cache(),
            tracker: Arc::clone(&sources.tracker),
        };

        let batch = flags.endpointslice_updates_batch_period.0;
        let woken = queue.clone();
        services.on_change(move |change| {
            if let Some((key, cause)) = changes::service_changed(change) {
                woken.add(&key, cause);
            }
        });
        let (known, woken) = (Arc::clone(&sources), queue.clone());
        pods.on_change(move |change| known.pod_changed(change).iter().for_each(|key| woken.add_after(key, batch)));
        let (known, woken) = (Arc::clone(&sources), queue.clone());
        let delay = SLICE_CHANGE_DELAY.max(batch);
        // Those that are there at the start are looked at with their Services.
        slices.on_later_change(move |change| {
            known.slice_changed(change).iter().for_each(|key| woken.add_after(key, delay));
        });
        let (known, woken, services_queue) = (Arc::clone(&sources), zones.clone(), queue.clone());
        nodes.on_change(move |change| {
            known.node_changed(change).iter().for_each(|key| services_queue.add(key, Cause::Event));
            if changes::is_of_zones(change) {
                known.tracker.forget_zones();
                woken.add(&zones_key(), Cause::Event);
            }
        });
        setup.watch(services);
        setup.watch(pods);
        setup.watch(nodes);
        setup.watch(slices);

        let config = Config { max_endpoints_per_slice: flags.max_endpoints_per_slice };
        let (clock, decisions) = (setup.clock(), setup.decisions(&queue));
        let controller = EndpointSliceController { sources: Arc::clone(&sources), writer, config, clock, decisions };
        setup.work(Arc::new(controller), &queue, flags.concurrent_service_endpoint_syncs);
        setup.work(Arc::new(ZoneController { sources, services: queue }), &zones, 1);
    }
}

/// What is followed.
struct Informers {
    services: Informer<Service>,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    slices: Informer<EndpointSlice>,
}

fn follow() -> (Sources, Informers) {
    let mut services = InformerBuilder::<Service>::new();
    let by_selector = services.index(|service, emit| first_of_selector(service).into_iter().for_each(emit));
    let mut pods = InformerBuilder::<Pod>::new().fields(LIVING_PODS);
    let pods_by_namespace = pods.index_by_namespace();
    // What others manage is none of ours, and need not be known.
    let mut slices = InformerBuilder::<EndpointSlice>::new().labels(format!("{}={MANAGED_BY}", labels::MANAGED_BY));
    let by_service =
        slices.index(|slice, emit| slice.service().iter().for_each(|service| emit(service_value(service))));
    let (services, pods, slices) = (services.build(), pods.build(), slices.build());
    let nodes = InformerBuilder::<Node>::new().build();
    let sources = Sources {
        services: services.cache(),
        by_selector,
        pods: pods.cache(),
        pods_by_namespace,
        nodes: nodes.cache(),
        slices: slices.cache(),
        by_service,
        tracker: Arc::new(Tracker::default()),
    };
    (sources, Informers { services, pods, nodes, slices })
}

/// How far apart two syncs of a Service are that change its slices: while pods come and go by the dozen, a slice of a
/// hundred endpoints is not written for each of them. The first change waits for nothing, nor does the Service's own.
/// Upstream's have 1 s between them whenever its cache is behind: `defaultSyncBackOff`,
/// `pkg/controller/endpointslice/endpointslice_controller.go`.
const REST: Duration = Duration::from_millis(100);

/// Syncs Services.
struct EndpointSliceController {
    sources: Arc<Sources>,
    writer: Writer,
    config: Config,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for EndpointSliceController {
    /// Upstream: `syncService`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.sources.observe(key) else {
            // Its slices are collected as garbage.
            self.sources.tracker.forget(key);
            self.writer.metrics.forget(key);
            self.writer.control.forget(key, None);
            self.writer.metrics.synced(results::SUCCESS);
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed, self.config);
        self.decisions.record(self.clock.now(), key, &plan);
        let (missing, requeue) = (plan.missing_nodes(), requeue(&plan));
        let is_whole = missing.is_empty();
        self.sources.tracker.await_nodes(key, missing);
        let outcome = match plan {
            Plan::Ignore(_) => Ok(()),
            Plan::Write(slices) => {
                self.writer.metrics.decided(&observed.service, &slices);
                self.writer.apply(&observed.service, slices).await
            }
        };
        let result = if is_whole && outcome.is_ok() { results::SUCCESS } else { results::ERROR };
        self.writer.metrics.synced(result);
        outcome.map(|()| requeue)
    }

    fn held(&self, _resource: &str) {
        self.writer.metrics.synced(results::STALE);
    }
}

/// When a Service is looked at again for which all was done that was planned.
fn requeue(plan: &Plan) -> Requeue {
    if !plan.missing_nodes().is_empty() {
        return Requeue::Partly(REST);
    }
    if plan.writes() { Requeue::Rest(REST) } else { Requeue::Done }
}

/// Wakes the Services whose hints no longer fit once a node has changed.
struct ZoneController {
    sources: Arc<Sources>,
    services: Queue,
}

/// The one key of its queue.
fn zones_key() -> Key {
    Key::new("", "zones")
}

impl Controller for ZoneController {
    /// Upstream: `checkNodeTopologyDistribution`, `endpointslice_controller.go`.
    async fn sync(&self, _key: &Key) -> anyhow::Result<Requeue> {
        let zones = self.sources.zones();
        for service in self.sources.tracker.overloaded(zones.as_deref()) {
            self.services.add(&service, Cause::Event);
        }
        Ok(Requeue::Done)
    }
}
