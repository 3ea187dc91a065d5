//! The operator as a process. Each queue has a controller in a file of its own; a key is a uid.
//!
//! Upstream's third queue, of graph changes, is the order in which the graph's lock is taken.

mod attempt_to_delete;
mod attempt_to_orphan;
mod monitors;

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use shared::api::object::Uid;
use shared::controllers::brake::{Brake, Limits};
use shared::process::metrics::Metrics;
use shared::process::run::{Names, Operator, Setup};
use shared::working::queue::Backoff;

use crate::apply;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::graph::Graph;
use crate::graph::dot::{self, Drawing};
use crate::observe::Caches;
use attempt_to_delete::AttemptToDelete;
use attempt_to_orphan::AttemptToOrphan;
use monitors::Monitors;

/// How many objects of a kind the brake on mass deletion lets go at once at least.
const LEAST: usize = 10;
/// Upstream's metric; `_total` is added.
const SYNC_ERRORS: &str = "garbagecollector_controller_resources_sync_error";

/// Upstream: `GarbageCollectorResourcesSyncError`, `pkg/controller/garbagecollector/metrics/metrics.go`.
fn sync_errors(metrics: &Metrics) -> Counter {
    let errors = Counter::default();
    metrics.register(SYNC_ERRORS, "Number of garbage collector resources sync errors", errors.clone());
    errors
}

pub struct GarbageCollectorOperator;

impl Operator for GarbageCollectorOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        if !flags.enable_garbage_collector {
            tracing::warn!("garbage collector is disabled: --enable-garbage-collector=false");
            return;
        }
        let deletes = setup.queue(facts::DELETES.name, Backoff::default());
        let orphans = setup.queue(facts::ORPHANS.name, Backoff::default());
        let (of_deletes, of_orphans) = (setup.context(&deletes), setup.context(&orphans));
        let caches = Arc::new(Caches::new(deletes.clone(), orphans.clone(), of_deletes.recorder().clone()));

        let errors = sync_errors(setup.metrics());
        let (monitors, ready) = Monitors::new(setup.feeder(), Arc::clone(&caches), errors);
        setup.run("monitors", ready, monitors.run());

        let restored = Arc::clone(&caches);
        setup.on_restore(move || restored.with_graph(Graph::forget_absent));
        let resumed = Arc::clone(&caches);
        setup.at_start(move || resumed.resume());
        let shown = Arc::clone(&caches);
        setup.page("/debug/controllers/garbage-collector-controller/graph", dot::CONTENT_TYPE, move |query| {
            let (shown, of): (_, Vec<Uid>) = (Arc::clone(&shown), query.values("uid").map(Uid::parse).collect());
            let mut drawing = shown.with_graph(|graph| Drawing::new(graph, &of));
            std::iter::from_fn(move || shown.with_graph(|graph| drawing.piece(graph)))
        });

        let limits = Limits { share: flags.mass_deletion_share, least: LEAST };
        let deleter = AttemptToDelete {
            caches: Arc::clone(&caches),
            writer: apply::Writer { caches: Arc::clone(&caches), ctx: of_deletes.clone() },
            brake: Brake::new(setup, of_deletes.clone(), limits),
            ctx: of_deletes,
        };
        let writer = apply::orphan::Writer { caches: Arc::clone(&caches), ctx: of_orphans.clone() };
        let orphaner = AttemptToOrphan { caches, writer, ctx: of_orphans };
        setup.work(Arc::new(deleter), &deletes, flags.concurrent_gc_syncs);
        setup.work(Arc::new(orphaner), &orphans, flags.concurrent_gc_syncs);
    }
}
