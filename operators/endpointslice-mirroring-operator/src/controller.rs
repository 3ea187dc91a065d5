//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::controllers::endpoints::slice_writer::SliceWriter;
use shared::following::cache::Change;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::MirroringMetrics;
use crate::objects::{ENDPOINTS, SERVICES};
use crate::observe::{Caches, Informers};
use crate::plan::{Config, plan};

/// The back-off starts at a second, because one sync may need many writes.
///
/// Upstream: `defaultSyncBackOff`,
/// `pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

pub struct EndpointSliceMirroringOperator;

impl Operator for EndpointSliceMirroringOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        let ctx = setup.context(&queue);
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let tracker = caches.tracker.clone();
        setup.on_restore(move || tracker.start_over());
        follow(flags, setup, &queue, &caches, informers);
        let max_endpoints_per_subset = flags.mirroring_max_endpoints_per_subset;
        let metrics = MirroringMetrics::register(setup.metrics(), max_endpoints_per_subset);
        let controller = MirroringController {
            writer: Writer {
                slices: SliceWriter {
                    ctx: ctx.clone(),
                    endpoint_slices: Arc::clone(&caches.endpoint_slices),
                    tracker: caches.tracker.clone(),
                    changes: metrics.changes.clone(),
                },
                metrics,
            },
            caches,
            config: Config { max_endpoints_per_subset },
            ctx,
        };
        setup.work(Arc::new(controller), &queue, flags.mirroring_concurrent_service_endpoint_syncs);
    }
}

/// Register the handlers and the watches; Endpoints are watched only in namespaces of Services without a selector.
fn follow(flags: &Flags, setup: &mut Setup, queue: &Queue, caches: &Arc<Caches>, informers: Informers) {
    let Informers { mut services, mut endpoints, mut endpoint_slices } = informers;
    let effects = setup.effects(queue);
    let batch = flags.mirroring_endpointslice_updates_batch_period.0;
    services.on_change(effects.with(changes::service_changed));
    endpoints.on_change(effects.with(changes::endpoints_changed));
    endpoint_slices.on_change(effects.of(caches, move |caches, change| caches.endpoint_slice_changed(change, batch)));
    let tracker = caches.tracker.clone();
    endpoint_slices.on_change(move |change| {
        if let Change::Deleted(slice) = change {
            tracker.deletion_observed(slice);
        }
    });
    let need = services.need(|service| !service.has_selector);
    setup.watch(services);
    setup.watch_beside(endpoints, &need);
    // Always, because slices that are no longer needed must be deleted.
    setup.watch(endpoint_slices);
}

struct MirroringController {
    caches: Arc<Caches>,
    writer: Writer,
    config: Config,
    ctx: ControllerContext,
}

impl Controller for MirroringController {
    /// Upstream: `syncEndpoints`, `endpointslicemirroring_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let started = self.ctx.now();
        let observed = self.caches.observe(key);
        let plan = plan(&observed, self.config);
        self.ctx.decide(key, &plan);
        let applied = self.writer.apply(&observed, plan).await;
        let took = Duration::try_from(started.duration_until(self.ctx.now())).unwrap_or_default();
        self.writer.metrics.synced(took);
        applied?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&ENDPOINTS).or_else(|| object.key_of(&SERVICES))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        vec![stage(&plan(&self.caches.observe(key), self.config))]
    }
}
