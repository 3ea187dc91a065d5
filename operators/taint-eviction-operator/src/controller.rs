//! The operator as a process, and one sync of a pod on one screen.

mod changes;
mod nodes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::controllers::brake::Brake;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Plan, plan};
use nodes::NodeController;

/// Upstream: `UpdateWorkerSize`, `pkg/controller/tainteviction/taint_eviction.go`.
const NODE_WORKERS: usize = 8;
/// Upstream deletes each due pod in a goroutine of its own: the pods of a lost node are due at the same time. A bound
/// leaves the apiserver room for the heartbeats of the other nodes.
const POD_WORKERS: usize = 64;

pub struct TaintEvictionOperator;

impl Operator for TaintEvictionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let of_nodes = setup.queue(facts::NODES.name, Backoff::default());
        let of_pods = setup.queue(facts::PODS.name, Backoff::default());
        let ctx = setup.context(&of_pods);
        let (caches, Informers { mut nodes, mut pods, need }) = Caches::new();
        let caches = Arc::new(caches);
        nodes.on_change(setup.effects(&of_nodes).of(&caches, Caches::node_changed));
        pods.on_change(setup.effects(&of_pods).of(&caches, Caches::pod_changed));
        let brake = Brake::of_nodes(setup, ctx.clone(), flags.mass_deletion_share);
        brake.follow(&mut nodes);
        setup.watch(nodes);
        setup.watch_on_nodes(pods, &need);
        let writer = Writer {
            ctx: ctx.clone(),
            metrics: metrics::register(setup.metrics()),
            evictions: Arc::clone(&caches.evictions),
        };
        let nodes = NodeController {
            caches: Arc::clone(&caches),
            pods: of_pods.clone(),
            brake: Arc::clone(&brake),
            ctx: setup.context(&of_nodes),
        };
        setup.work(Arc::new(nodes), &of_nodes, NODE_WORKERS);
        setup.work(Arc::new(PodController { caches, writer, brake, ctx }), &of_pods, POD_WORKERS);
    }
}

struct PodController {
    caches: Arc<Caches>,
    writer: Writer,
    brake: Arc<Brake<Text>>,
    ctx: ControllerContext,
}

impl Controller for PodController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((mut observed, mut plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        if plan.is_unexplained() {
            if let Some(wait) = self.hold_back(&observed) {
                self.writer.hold(key, plan);
                return Ok(wait);
            }
            let node = self.caches.live_node(self.ctx.control(), &observed).await?;
            // The pod may have changed, or gone, meanwhile.
            let now = self.ctx.now();
            let Some(newest) = self.caches.observe(key, now) else { return Ok(Requeue::Done) };
            observed = Observed { node, ..newest };
            let cached = std::mem::replace(&mut plan, self::plan(&observed, now));
            if plan != cached {
                self.ctx.decide(key, &plan);
            }
        }
        let next = self.writer.apply(&observed, plan).await?;
        Ok(Requeue::earliest([next.map(|left| (left, "the end of its toleration"))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}

impl PodController {
    fn decide(&self, key: &Key) -> Option<(Observed, Plan)> {
        let now = self.ctx.now();
        let observed = self.caches.observe(key, now)?;
        let plan = plan(&observed, now);
        Some((observed, plan))
    }

    /// When to retry a deletion that the brake delays.
    fn hold_back(&self, observed: &Observed) -> Option<Requeue> {
        let pod = observed.pod.as_ref()?;
        let node = (&pod.node, observed.node.as_ref().map(|node| node.metadata.uid).unwrap_or_default());
        self.brake.ask_for_node(&observed.key, node, || self.caches.nodes.len())
    }
}
