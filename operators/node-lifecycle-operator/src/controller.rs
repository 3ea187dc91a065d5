//! The operator as a process, and one sync of a node on one screen.
//!
//! Left out: which change enqueues which node, which is in `changes`; the look at all nodes, which is in `rounds`; and
//! the marking of pods, which is in `pods`.

mod changes;
mod pods;
mod rounds;

use std::sync::Arc;

use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::NodeMetrics;
use crate::observe::{Caches, Informers, Observed, live_renewed};
use crate::plan::gap::{Look, gap};
use crate::plan::{Config, plan, plan_live_read};
use pods::PodsController;
use rounds::{RoundController, round_key};

/// Upstream: `nodeUpdateWorkerSize`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
const NODE_WORKERS: usize = 8;
/// Upstream: `podUpdateWorkerSize`.
const POD_WORKERS: usize = 4;

/// The operator as a process.
pub struct NodeLifecycleOperator;

impl Operator for NodeLifecycleOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let config = Config::from(flags);
        let of_nodes = setup.queue(facts::NODES.name, Backoff::default());
        let of_pods = setup.queue(facts::PODS.name, Backoff::default());
        let of_rounds = setup.queue(facts::ROUNDS.name, Backoff::default());
        let caches = follow(setup, config, &of_nodes, &of_pods);
        let metrics = NodeMetrics::register(setup.metrics());
        let nodes = NodeController {
            config,
            writer: writer(setup, &of_nodes, &caches, &metrics),
            clock: setup.clock(),
            decisions: setup.decisions(&of_nodes),
        };
        let pods = PodsController {
            writer: writer(setup, &of_pods, &caches, &metrics),
            clock: setup.clock(),
            decisions: setup.decisions(&of_pods),
        };
        let rounds = RoundController {
            config,
            caches,
            nodes: of_nodes.clone(),
            metrics,
            clock: setup.clock(),
            decisions: setup.decisions(&of_rounds),
        };
        let first = of_rounds.clone();
        setup.at_start(move || first.add(&round_key(), Cause::Event));
        setup.work(Arc::new(nodes), &of_nodes, NODE_WORKERS);
        setup.work(Arc::new(pods), &of_pods, POD_WORKERS);
        setup.work(Arc::new(rounds), &of_rounds, 1);
    }
}

/// Follows nodes and their Leases. The memory is told of a change before anything is decided about it.
fn follow(setup: &mut Setup, config: Config, of_nodes: &Queue, of_pods: &Queue) -> Arc<Caches> {
    let (caches, Informers { mut nodes, mut leases }) = Caches::new();
    let caches = Arc::new(caches);
    let (noting, clock) = (Arc::clone(&caches), setup.clock());
    nodes.on_change(move |change| noting.memory.note_node(&change, clock.now()));
    let (noting, clock) = (Arc::clone(&caches), setup.clock());
    leases.on_change(move |change| noting.memory.note_lease(&change, clock.now()));
    let clock = setup.clock();
    let effects = setup.effects(of_nodes);
    nodes.on_change(
        effects.of(&caches, move |caches: &Caches, change| caches.node_changed(change, &config, clock.now())),
    );
    nodes.on_change(setup.effects(of_pods).of(&caches, Caches::pods_concerned));
    setup.watch(nodes);
    setup.watch(leases);
    caches
}

fn writer(setup: &mut Setup, queue: &Queue, caches: &Arc<Caches>, metrics: &NodeMetrics) -> Writer {
    Writer {
        control: setup.control(queue),
        recorder: setup.recorder(),
        metrics: metrics.clone(),
        clock: setup.clock(),
        caches: Arc::clone(caches),
    }
}

/// Syncs nodes.
struct NodeController {
    config: Config,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl NodeController {
    /// Notes in the memory what the apiserver says of the node's Lease.
    async fn ask(&self, observed: &Observed, asked: Timestamp) -> anyhow::Result<()> {
        let (caches, key) = (&self.writer.caches, &observed.key);
        let renewed = live_renewed(&self.writer.control, key).await;
        let now = self.clock.now();
        let look = |at| Look { at, is_followed: true };
        // An apiserver that takes long to answer, or cannot, may have taken no renewal either.
        let was_away = renewed.is_err() || gap(Some(look(asked)), look(now), &self.config).is_some();
        // The apiserver's is the newer one, whatever the node's clock says.
        let is_behind = renewed.as_ref().is_ok_and(|renewed| renewed.is_some() && *renewed != observed.renewed);
        if is_behind {
            caches.catch_up();
        }
        if is_behind || was_away {
            caches.memory.hear(key, now);
        }
        renewed.map(drop)
    }

    fn observe(&self, key: &Key) -> Option<Observed> {
        self.writer.caches.observe_to_judge(key, &self.config, self.clock.now())
    }
}

impl Controller for NodeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.observe(key) else { return Ok(Requeue::Done) };
        let began = self.clock.now();
        if let Some(live_read) = plan_live_read(&observed, &self.config, began) {
            self.decisions.record(began, key, &live_read);
            self.ask(&observed, began).await?;
            // Signs of life, and a look at all nodes, may have come meanwhile.
            let Some(newest) = self.observe(key) else { return Ok(Requeue::Done) };
            observed = newest;
        }
        let plan = plan(&observed, &self.config, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { error } = self.writer.apply(&observed, plan).await;
        self.writer.metrics.synced(self.clock.now().duration_since(began));
        error.map_or(Ok(Requeue::Done), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let (observed, now) = (self.observe(key), self.clock.now());
        let stage = |observed: &Observed| {
            first_stage(plan_live_read(observed, &self.config, now), || plan(observed, &self.config, now))
        };
        observed.iter().map(stage).collect()
    }
}
