//! The operator as a process, and rounds over the pods that have ended or are stuck.
//!
//! A round is the same whatever leads to it, so it has one key. Left out: which change does not wait for the next
//! round, which is in `changes`, and nodes that are missing: `bindings` looks for them, and `missing_node` at each.

mod bindings;
mod changes;
mod missing_node;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::controllers::brake::{Brake, Limits};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::flags::Flags;
use crate::metrics::DeletionMetrics;
use crate::observe::{Caches, Informers, Scope, live_round};
use crate::plan::{plan, pod_outlook};
use bindings::BindingsController;
use missing_node::MissingNodeController;

/// Upstream: `gcCheckPeriod`, `pkg/controller/podgc/gc_controller.go`.
const PERIOD: Duration = Duration::from_secs(20);

/// So many nodes may lose their pods in any case before the brake on mass deletion holds others back.
const LEAST: usize = 10;

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
        let bindings = setup.queue("pod_gc_bindings", Backoff::default());
        let missing = setup.queue("orphaned_pods_nodes", Backoff::default());
        let threshold = flags.terminated_pod_gc_threshold;
        let (caches, Informers { pods, mut nodes }) = Caches::new();
        let caches = Arc::new(caches);
        nodes.on_change(setup.effects(&rounds).of(&caches, |_, change| Caches::node_changed(change)));
        nodes.on_change(setup.effects(&missing).of(&caches, |_, change| Caches::missing_node_changed(change)));
        setup.watch(nodes);
        if threshold > 0 {
            setup.watch(pods);
        }
        let writer = Writer {
            control: setup.control(&rounds),
            missing: missing.clone(),
            metrics: DeletionMetrics::register(setup.metrics()),
            clock: setup.clock(),
            decisions: setup.decisions(&rounds),
        };
        let search = BindingsController {
            caches: Arc::clone(&caches),
            writer: Writer { control: setup.control(&bindings), ..writer.clone() },
            clock: setup.clock(),
            decisions: setup.decisions(&bindings),
        };
        let ctx = setup.context(&missing);
        let node = MissingNodeController {
            caches: Arc::clone(&caches),
            writer: Writer { control: setup.control(&missing), ..writer.clone() },
            brake: Brake::new(setup, ctx, Limits { share: flags.mass_deletion_share, least: LEAST }),
            clock: setup.clock(),
            decisions: setup.decisions(&missing),
        };
        let (clock, decisions) = (setup.clock(), setup.decisions(&rounds));
        let round = RoundController { caches, writer, threshold, clock, decisions };
        begin(setup, &rounds, &bindings);
        setup.work(Arc::new(round), &rounds, 1);
        setup.work(Arc::new(search), &bindings, 1);
        setup.work(Arc::new(node), &missing, 1);
    }
}

/// Enqueues the work that needs no change: the first round, and the searches for nodes that went unseen. In a restored
/// etcd pods may be bound to nodes which were gone when the backup was made.
fn begin(setup: &mut Setup, rounds: &Queue, bindings: &Queue) {
    let (rounds, searches, restored) = (rounds.clone(), bindings.clone(), bindings.clone());
    setup.at_start(move || {
        rounds.add(&round_key(), Cause::Event);
        searches.add(&Scope::All.key(), Cause::Event);
        searches.add_after(&Scope::Pending.key(), bindings::PERIOD, bindings::PURPOSE);
    });
    setup.on_restore(move || restored.add(&Scope::All.key(), Cause::Event));
}

fn round_key() -> Key {
    Key::new("", "round")
}

/// Looks at the pods that have ended or are stuck.
struct RoundController {
    caches: Arc<Caches>,
    writer: Writer,
    threshold: i32,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for RoundController {
    /// A pod that fails is tried again in the next round, and keeps no other pod waiting. Upstream: `gc`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_round(&self.writer.control, self.caches.observe(key, self.threshold)).await;
        let plan = plan(&observed, self.threshold);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { error: _ } = self.writer.apply(&observed, plan).await;
        Ok(Requeue::After(PERIOD, "the next round"))
    }

    /// A round has no object; under a pod's key is what was decided about that pod alone.
    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let pods = &self.caches.pods;
        vec![stage(&pod_outlook(pods.get(key).is_some(), pods.len(), self.threshold))]
    }
}
