//! Wiring, and one sync of each of the two queues.
//!
//! A key is a uid. Upstream's third queue, of graph changes, is the order in which the graph's lock is taken.

pub mod collector;
pub mod monitors;

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use shared::api::object::{Key, Uid};
use shared::runtime::clock::Clock;
use shared::runtime::control::Control;
use shared::runtime::decisions::Decisions;
use shared::runtime::metrics::Metrics;
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::apply;
use crate::apply::orphan::orphan;
use crate::flags::Flags;
use crate::graph::Graph;
use crate::graph::dot::{self, Drawing};
use crate::observe::observe;
use crate::plan::{self, LookAgain, plan};
use collector::{Collector, uid_of};
use monitors::Monitors;

/// Upstream's metric; `_total` is added.
const SYNC_ERRORS: &str = "garbagecollector_controller_resources_sync_error";

/// Upstream: `GarbageCollectorResourcesSyncError`, `pkg/controller/garbagecollector/metrics/metrics.go`.
fn sync_errors(metrics: &Metrics) -> Counter {
    let errors = Counter::default();
    metrics.register(SYNC_ERRORS, "Number of garbage collector resources sync errors", errors.clone());
    errors
}

/// The operator as a process.
pub struct GarbageCollectorOperator;

impl Operator for GarbageCollectorOperator {
    const NAMES: Names = Names {
        operator: "garbage-collector-operator",
        controller: "garbage-collector-controller",
        event_source: "garbage-collector-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        if !flags.enable_garbage_collector {
            tracing::warn!("--enable-garbage-collector=false: there is nothing to do");
            return;
        }
        let deletes = setup.queue("garbage_collector_attempt_to_delete", Backoff::default());
        let orphans = setup.queue("garbage_collector_attempt_to_orphan", Backoff::default());
        let collector = Arc::new(Collector::new(deletes.clone(), orphans.clone(), setup.recorder()));

        let errors = sync_errors(setup.metrics());
        let (monitors, ready) = Monitors::new(setup.feeder(), Arc::clone(&collector), errors);
        setup.run("monitors", ready, monitors.run());

        let restored = Arc::clone(&collector);
        setup.on_restore(move || restored.with_graph(Graph::forget_absent));
        let resumed = Arc::clone(&collector);
        setup.at_start(move || resumed.resume());
        let shown = Arc::clone(&collector);
        setup.page("/debug/controllers/garbage-collector-controller/graph", dot::CONTENT_TYPE, move |query| {
            let (shown, of): (_, Vec<Uid>) = (Arc::clone(&shown), query.values("uid").map(Uid::parse).collect());
            let mut drawing = shown.with_graph(|graph| Drawing::new(graph, &of));
            std::iter::from_fn(move || shown.with_graph(|graph| drawing.piece(graph)))
        });

        let deleter = AttemptToDelete {
            collector: Arc::clone(&collector),
            control: setup.control(&deletes),
            clock: setup.clock(),
            decisions: setup.decisions(&deletes),
        };
        let (control, clock, decisions) = (setup.control(&orphans), setup.clock(), setup.decisions(&orphans));
        setup.work(Arc::new(deleter), &deletes, flags.concurrent_gc_syncs);
        let orphaner = AttemptToOrphan { collector, control, clock, decisions };
        setup.work(Arc::new(orphaner), &orphans, flags.concurrent_gc_syncs);
    }
}

/// Deletes what nobody owns any more.
pub struct AttemptToDelete {
    collector: Arc<Collector>,
    control: Control,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for AttemptToDelete {
    /// Upstream: `attemptToDeleteWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let (waited, served) = (self.collector.take_unserved(Uid::parse(key.name())), self.collector.served());
        let Some(uid) = self.collector.with_graph(|graph| uid_of(graph, key)) else { return Ok(Requeue::Done) };
        let Some(observed) = observe(&self.collector, &self.control, uid).await? else { return Ok(Requeue::Done) };
        let plan = plan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        Ok(match apply(&self.collector, self.control.for_key(key, uid), plan).await? {
            LookAgain::No => Requeue::Done,
            LookAgain::Later => Requeue::RateLimited,
            LookAgain::WhenServed => Requeue::After(self.collector.wait_for_kinds(uid, waited + 1, &served)),
        })
    }
}

/// Orphans the dependents of what is deleted without them.
pub struct AttemptToOrphan {
    collector: Arc<Collector>,
    control: Control,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for AttemptToOrphan {
    /// Upstream: `attemptToOrphanWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let planned = self.collector.with_graph(|graph| plan::orphan::plan(graph, Uid::parse(key.name())));
        let Some(planned) = planned else { return Ok(Requeue::Done) };
        self.decisions.record(self.clock.now(), key, &planned);
        let (owner, dependents) = (planned.owner.to_string(), planned.releases.len());
        orphan(&self.collector, self.control.for_name(key), planned).await?;
        tracing::info!(%key, owner, dependents, "orphaned the dependents");
        Ok(Requeue::Done)
    }
}
