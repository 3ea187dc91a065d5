//! The operator as a process, and one sync of a node on one screen.

mod changes;
mod pods;
mod rounds;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::{Backoff, Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::NodeMetrics;
use crate::observe::{Caches, Informers};
use crate::plan::{Config, Next, next, plan};
use pods::PodsController;
use rounds::{RoundController, round_key};

/// Upstream: `nodeUpdateWorkerSize`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
const NODE_WORKERS: usize = 8;
/// Upstream: `podUpdateWorkerSize`.
const POD_WORKERS: usize = 4;

pub struct NodeLifecycleOperator;

impl Operator for NodeLifecycleOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let config = Config::from(flags);
        let of_nodes = setup.queue(facts::NODES.name, Backoff::default());
        let of_pods = setup.queue(facts::PODS.name, Backoff::default());
        let of_rounds = setup.queue(facts::ROUNDS.name, Backoff::default());
        let ctx = setup.context(&of_nodes);
        let caches = follow(setup, config, &ctx, (&of_nodes, &of_pods));
        let metrics = NodeMetrics::register(setup.metrics());
        let writer = Writer { ctx: ctx.clone(), metrics: metrics.clone(), caches: Arc::clone(&caches) };
        let pods_ctx = setup.context(&of_pods);
        let pods = PodsController {
            caches: Arc::clone(&caches),
            writer: Writer { ctx: pods_ctx.clone(), ..writer.clone() },
            ctx: pods_ctx,
        };
        let rounds = RoundController {
            config,
            caches: Arc::clone(&caches),
            nodes: of_nodes.clone(),
            metrics,
            ctx: setup.context(&of_rounds),
        };
        let nodes = NodeController { config, caches, writer, ctx };
        let first = of_rounds.clone();
        setup.at_start(move || first.add(&round_key(), Cause::Event));
        setup.work(Arc::new(nodes), &of_nodes, NODE_WORKERS);
        setup.work(Arc::new(pods), &of_pods, POD_WORKERS);
        setup.work(Arc::new(rounds), &of_rounds, 1);
    }
}

/// Follows nodes and their Leases. The memory notes a change before anything is decided about it.
fn follow(
    setup: &mut Setup,
    config: Config,
    ctx: &ControllerContext,
    (of_nodes, of_pods): (&Queue, &Queue),
) -> Arc<Caches> {
    let (caches, Informers { mut nodes, mut leases }) = Caches::new();
    let caches = Arc::new(caches);
    caches.memory.follow(&mut nodes, &mut leases, ctx);
    let (effects, clock) = (setup.effects(of_nodes), ctx.clone());
    nodes.on_change(
        effects.of(&caches, move |caches: &Caches, change| caches.node_changed(change, &config, clock.now())),
    );
    nodes.on_change(setup.effects(of_pods).of(&caches, Caches::pods_concerned));
    setup.watch(nodes);
    setup.watch(leases);
    caches
}

struct NodeController {
    config: Config,
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for NodeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let began = self.ctx.now();
        let plan = match next(&observed, &self.config, began) {
            Next::Execute(plan) => plan,
            Next::Ask(live_read) => {
                self.ctx.decide(key, &live_read);
                self.writer.ask(&observed, &self.config, began).await?;
                // Heartbeats, and a look at all nodes, may have come meanwhile.
                let Some(newest) = self.caches.observe(key) else { return Ok(Requeue::Done) };
                observed = newest;
                plan(&observed, &self.config, self.ctx.now())
            }
        };
        self.ctx.decide(key, &plan);
        let applied = self.writer.apply(&observed, plan).await;
        self.writer.metrics.synced(self.ctx.now().duration_since(began));
        applied.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        observed.iter().map(|observed| next(observed, &self.config, self.ctx.now()).stage()).collect()
    }
}
