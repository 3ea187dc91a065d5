//! The operator as a process, and rounds over all pods and nodes.
//!
//! A round is the same whatever leads to it, so it has one key. Left out: which change does not wait for the next round,
//! which is in `changes`, and the nodes that are missing, which have a controller of their own in `missing_node`.

mod changes;
mod missing_node;

use std::sync::Arc;
use std::time::Duration;

use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::{Backoff, Cause};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::flags::Flags;
use crate::metrics::DeletionMetrics;
use crate::observe::{Caches, Informers, live_out_of_service};
use crate::plan::plan;
use missing_node::MissingNodeController;

/// Upstream: `gcCheckPeriod`, `pkg/controller/podgc/gc_controller.go`.
const PERIOD: Duration = Duration::from_secs(20);

/// The operator as a process.
pub struct PodGarbageCollectorOperator;

impl Operator for PodGarbageCollectorOperator {
    const NAMES: Names = Names {
        operator: "pod-garbage-collector-operator",
        controller: "pod-garbage-collector-controller",
        event_source: "pod-garbage-collector-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let rounds = setup.queue("pod_gc_collector", Backoff::default());
        let missing = setup.queue("orphaned_pods_nodes", Backoff::default());
        let (caches, Informers { mut pods, mut nodes }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&rounds);
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        nodes.on_change(effects.of(&caches, Caches::node_changed));
        setup.watch(pods);
        setup.watch(nodes);
        let writer = Writer {
            control: setup.control(&rounds),
            missing: missing.clone(),
            metrics: DeletionMetrics::register(setup.metrics()),
            clock: setup.clock(),
            decisions: setup.decisions(&rounds),
        };
        let node = MissingNodeController {
            caches: Arc::clone(&caches),
            writer: Writer { control: setup.control(&missing), ..writer.clone() },
            clock: setup.clock(),
            decisions: setup.decisions(&missing),
        };
        let round = RoundController {
            caches,
            writer,
            threshold: flags.terminated_pod_gc_threshold,
            clock: setup.clock(),
            decisions: setup.decisions(&rounds),
        };
        let first = rounds.clone();
        setup.at_start(move || first.add(&round_key(), Cause::Event));
        setup.work(Arc::new(round), &rounds, 1);
        setup.work(Arc::new(node), &missing, 1);
    }
}

fn round_key() -> Key {
    Key::new("", "round")
}

/// Looks at all pods.
struct RoundController {
    caches: Arc<Caches>,
    writer: Writer,
    threshold: i32,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for RoundController {
    /// What fails is tried again in the next round, and keeps no other pod waiting. Upstream: `gc`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_out_of_service(&self.writer.control, self.caches.observe(key)).await;
        let plan = plan(&observed, self.threshold);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { error: _ } = self.writer.apply(&observed, plan).await;
        Ok(Requeue::After(PERIOD))
    }
}
