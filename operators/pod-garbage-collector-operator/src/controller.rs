//! The operator as a process, and rounds over terminated and stuck pods. A round is the same whatever leads to it, so it
//! has one key.

mod bindings;
mod changes;
mod missing_node;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::controllers::brake::Brake;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::DeletionMetrics;
use crate::observe::{Caches, Informers, Scope, live_round};
use crate::plan::{plan, pod_outlook};
use bindings::BindingsController;
use missing_node::MissingNodeController;

/// Upstream: `gcCheckPeriod`, `pkg/controller/podgc/gc_controller.go`.
const PERIOD: Duration = Duration::from_secs(20);

pub struct PodGarbageCollectorOperator;

impl Operator for PodGarbageCollectorOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let rounds = setup.queue(facts::ROUNDS.name, Backoff::default());
        let bindings = setup.queue(facts::BINDINGS.name, Backoff::default());
        let missing = setup.queue(facts::MISSING.name, Backoff::default());
        // A restored etcd may lack nodes whose kubelets register again within seconds.
        missing.keep_delays();
        let threshold = flags.terminated_pod_gc_threshold;
        let (caches, Informers { pods, mut nodes }) = Caches::new();
        let caches = Arc::new(caches);
        nodes.on_change(setup.effects(&rounds).with(changes::node_changed));
        nodes.on_change(setup.effects(&missing).with(changes::missing_node_changed));
        let of_missing = setup.context(&missing);
        let brake = Brake::of_nodes(setup, of_missing.clone(), flags.mass_deletion_share);
        brake.follow(&mut nodes);
        setup.watch(nodes);
        if threshold > 0 {
            setup.watch(pods);
        }
        let ctx = setup.context(&rounds);
        let metrics = DeletionMetrics::register(setup.metrics());
        let writer = Writer { ctx: ctx.clone(), of_pods: ctx.clone(), missing: missing.clone(), metrics };
        let of_bindings = setup.context(&bindings);
        let search = BindingsController {
            caches: Arc::clone(&caches),
            brake: Arc::clone(&brake),
            writer: Writer { ctx: of_bindings.clone(), ..writer.clone() },
            ctx: of_bindings,
        };
        let node = MissingNodeController {
            caches: Arc::clone(&caches),
            writer: Writer { ctx: of_missing.clone(), ..writer.clone() },
            brake,
            ctx: of_missing,
        };
        let round = RoundController { caches, writer, threshold, ctx };
        begin(setup, &rounds, &bindings);
        setup.work(Arc::new(round), &rounds, 1);
        setup.work(Arc::new(search), &bindings, 1);
        setup.work(Arc::new(node), &missing, 1);
    }
}

/// Enqueues the work that follows from no change: the first round, and the searches for nodes that were deleted unseen.
/// In a restored etcd, pods may be bound to nodes that were already gone when the backup was made.
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

struct RoundController {
    caches: Arc<Caches>,
    writer: Writer,
    threshold: i32,
    ctx: ControllerContext,
}

impl Controller for RoundController {
    /// A failed deletion is retried in the next round, and does not delay others. Upstream: `gc`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_round(self.ctx.control(), self.caches.observe(key, self.threshold)).await;
        let plan = plan(&observed, self.threshold);
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await;
        Ok(Requeue::After(PERIOD, "the next round"))
    }

    /// A round has no object. Under the key of a pod are the decisions about that pod alone.
    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let pods = &self.caches.pods;
        vec![stage(&pod_outlook(pods.get(key).is_some(), pods.len(), self.threshold))]
    }
}
