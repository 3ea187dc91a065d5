//! Wiring, and one sync of a Service.
//!
//! Left out: which change wakes which Service, which is `changes`', and the zones, which are `zones`'.

mod changes;
mod zones;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::endpoints::changes::service_changed;
use shared::controllers::endpoints::slice_writer::SliceWriter;
use shared::runtime::cache::Change;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::{Backoff, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::{EndpointSliceMetrics, results};
use crate::objects::Service;
use crate::observe::{Caches, Informers};
use crate::plan::{Config, Plan, plan};
use changes::{is_of_zones, zones_changed};
use zones::ZonesController;

/// A Service that fails is not looked at again for a second: one change of it may be many writes.
///
/// Upstream: `defaultSyncBackOff`, `pkg/controller/endpointslice/endpointslice_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

/// How long a change of a slice waits at least, for others to come.
///
/// Upstream: `endpointSliceChangeMinSyncDelay`, `endpointslice_controller.go`.
const SLICE_CHANGE_DELAY: Duration = Duration::from_secs(1);

/// The operator as a process.
pub struct EndpointSliceOperator;

impl Operator for EndpointSliceOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(facts::SERVICES.name, BACKOFF);
        let zones = setup.queue(facts::ZONES.name, Backoff::default());
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let tracker = Arc::clone(&caches.tracker);
        setup.on_restore(move || tracker.slices.start_over());
        follow(flags, setup, (&queue, &zones), &caches, informers);
        let metrics = EndpointSliceMetrics::register(setup.metrics(), flags.max_endpoints_per_slice);
        let controller = EndpointSliceController {
            writer: Writer {
                slices: SliceWriter {
                    control: setup.control(&queue),
                    endpoint_slices: Arc::clone(&caches.endpoint_slices),
                    tracker: caches.tracker.slices.clone(),
                    changes: metrics.changes.clone(),
                },
                recorder: setup.recorder(),
                metrics,
                tracker: Arc::clone(&caches.tracker),
            },
            caches: Arc::clone(&caches),
            config: Config { max_endpoints_per_slice: flags.max_endpoints_per_slice },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_service_endpoint_syncs);
        setup.work(Arc::new(ZonesController { caches, services: queue }), &zones, 1);
    }
}

/// Which change leads to a sync of which queue, and what is followed while a Service selects pods. What only the tracker
/// knows has handlers of its own.
fn follow(flags: &Flags, setup: &mut Setup, queues: (&Queue, &Queue), caches: &Arc<Caches>, informers: Informers) {
    let Informers { mut services, mut pods, mut nodes, mut endpoint_slices } = informers;
    let (effects, effects_on_zones) = (setup.effects(queues.0), setup.effects(queues.1));
    let batch = flags.endpointslice_updates_batch_period.0;
    let delay = SLICE_CHANGE_DELAY.max(batch);
    services.on_change(effects.of(caches, |_, change| service_changed(change)));
    pods.on_change(effects.of(caches, move |caches, change| caches.pod_changed(change, batch)));
    let tracker = Arc::clone(&caches.tracker);
    nodes.on_change(move |change| {
        if is_of_zones(change) {
            tracker.forget_zones();
        }
    });
    nodes.on_change(effects.of(caches, Caches::node_changed));
    nodes.on_change(effects_on_zones.of(caches, |_, change| zones_changed(change)));
    endpoint_slices.on_change(effects.of(caches, move |caches, change| caches.endpoint_slice_changed(change, delay)));
    let tracker = Arc::clone(&caches.tracker);
    endpoint_slices.on_change(move |change| {
        if let Change::Deleted(slice) = change {
            tracker.slices.deletion_observed(slice);
        }
    });
    let need = services.need(|service| service.selects().is_some());
    setup.watch(services);
    setup.watch_beside(pods, &need);
    // Whole, though hints alone need more than metadata. In a second cache a node could come later than in the first: an
    // endpoint would lack the zone that its hint is worked out from, and nothing would wake its Service again.
    setup.watch_while(nodes, &need);
    // Those of a Service that has lost its selector are left alone.
    setup.watch_while(endpoint_slices, &need);
}

/// How far apart two syncs of a Service are that change its slices: while pods come and go by the dozen, a slice of a
/// hundred endpoints is not written for each of them. The first change waits for nothing, nor does the Service's own.
/// Upstream's have 1 s between them whenever its cache is behind: `defaultSyncBackOff`,
/// `pkg/controller/endpointslice/endpointslice_controller.go`.
const REST: Duration = Duration::from_millis(100);

/// Syncs Services.
struct EndpointSliceController {
    caches: Arc<Caches>,
    writer: Writer,
    config: Config,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for EndpointSliceController {
    /// Upstream: `syncService`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed, self.config);
        self.decisions.record(self.clock.now(), key, &plan);
        let requeue = requeue(&plan);
        let Outcome { error } = self.writer.apply(&observed, plan).await;
        error.map_or(Ok(requeue), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Service::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe(key).iter().map(|observed| stage(&plan(observed, self.config))).collect()
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
