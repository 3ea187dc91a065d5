//! The operator as a process, and one sync on one screen.

mod changes;
mod zones;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::endpoints::changes::service_changed;
use shared::controllers::endpoints::slice_writer::SliceWriter;
use shared::following::cache::Change;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::{EndpointSliceMetrics, results};
use crate::objects::Service;
use crate::observe::{Caches, Informers};
use crate::plan::{Config, Plan, plan};
use changes::{changes_zones, zones_changed};
use zones::ZonesController;

/// The back-off starts at a second, because one sync may need many writes.
///
/// Upstream: `defaultSyncBackOff`, `pkg/controller/endpointslice/endpointslice_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

/// The shortest delay of a sync after a change of a slice, so that several changes need one sync.
///
/// Upstream: `endpointSliceChangeMinSyncDelay`, `endpointslice_controller.go`.
const SLICE_CHANGE_DELAY: Duration = Duration::from_secs(1);

pub struct EndpointSliceOperator;

impl Operator for EndpointSliceOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(facts::SERVICES.name, BACKOFF);
        let zones = setup.queue(facts::ZONES.name, Backoff::default());
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let memory = Arc::clone(&caches.memory);
        setup.on_restore(move || memory.slices.start_over());
        follow(flags, setup, (&queue, &zones), &caches, informers);
        let metrics = EndpointSliceMetrics::register(setup.metrics(), flags.max_endpoints_per_slice);
        let counting = metrics.clone();
        setup.on_held(&queue, move |_| counting.synced(results::STALE));
        let ctx = setup.context(&queue);
        let controller = EndpointSliceController {
            writer: Writer {
                slices: SliceWriter {
                    ctx: ctx.clone(),
                    endpoint_slices: Arc::clone(&caches.endpoint_slices),
                    tracker: caches.memory.slices.clone(),
                    changes: metrics.changes.clone(),
                },
                metrics,
                memory: Arc::clone(&caches.memory),
            },
            caches: Arc::clone(&caches),
            config: Config { max_endpoints_per_slice: flags.max_endpoints_per_slice },
            ctx,
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_service_endpoint_syncs);
        setup.work(Arc::new(ZonesController { caches, services: queue }), &zones, 1);
    }
}

/// Register the handlers and the watches; only Services are watched while none selects pods.
fn follow(flags: &Flags, setup: &mut Setup, queues: (&Queue, &Queue), caches: &Arc<Caches>, informers: Informers) {
    let Informers { mut services, mut pods, mut nodes, mut endpoint_slices } = informers;
    let (effects, effects_on_zones) = (setup.effects(queues.0), setup.effects(queues.1));
    let batch = flags.endpointslice_updates_batch_period.0;
    let delay = SLICE_CHANGE_DELAY.max(batch);
    services.on_change(effects.with(service_changed::<Service>));
    pods.on_change(effects.of(caches, move |caches, change| caches.pod_changed(change, batch)));
    let memory = Arc::clone(&caches.memory);
    nodes.on_change(move |change| {
        if changes_zones(change) {
            memory.forget_zones();
        }
    });
    nodes.on_change(effects.of(caches, Caches::node_changed));
    nodes.on_change(effects_on_zones.with(zones_changed));
    endpoint_slices.on_change(effects.of(caches, move |caches, change| caches.endpoint_slice_changed(change, delay)));
    let memory = Arc::clone(&caches.memory);
    endpoint_slices.on_change(move |change| {
        if let Change::Deleted(slice) = change {
            memory.slices.deletion_observed(slice);
        }
    });
    let need = services.need(|service| service.selects().is_some());
    setup.watch(services);
    setup.watch_beside(pods, &need);
    // Whole nodes in one cache, although only hints need more than metadata. In a second cache a node could appear later:
    // an endpoint would lack the zone for its hint, and nothing would sync its Service again.
    setup.watch_while(nodes, &need);
    setup.watch_while(endpoint_slices, &need);
}

/// The pause after a sync that wrote slices, because each write sends up to a hundred endpoints: changes of pods in the
/// pause are written together. The first change, and a change of the Service, are written at once. Upstream pauses for 1 s
/// if its cache is behind: `defaultSyncBackOff`, `pkg/controller/endpointslice/endpointslice_controller.go`.
const REST: Duration = Duration::from_millis(100);

struct EndpointSliceController {
    caches: Arc<Caches>,
    writer: Writer,
    config: Config,
    ctx: ControllerContext,
}

impl Controller for EndpointSliceController {
    /// Upstream: `syncService`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed, self.config);
        self.ctx.decide(key, &plan);
        let requeue = requeue(&plan);
        self.writer.apply(&observed, plan).await?;
        Ok(requeue)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Service::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe(key).iter().map(|observed| stage(&plan(observed, self.config))).collect()
    }
}

/// The next sync of a Service whose plan was executed.
fn requeue(plan: &Plan) -> Requeue {
    if !plan.missing_nodes().is_empty() {
        return Requeue::Partly(REST);
    }
    if plan.writes() { Requeue::Rest(REST) } else { Requeue::Done }
}
