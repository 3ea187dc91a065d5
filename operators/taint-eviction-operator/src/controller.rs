//! The operator as a process, and one sync of a pod on one screen.
//!
//! Left out: the keys that a change enqueues, which are in `changes`, and nodes: the sync in `nodes` finds the pods of
//! a node that have to be synced.

mod changes;
mod nodes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::controllers::brake::{Brake, Limits};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::flags::Flags;
use crate::metrics::DeletionMetrics;
use crate::observe::{Caches, Informers};
use crate::plan::{Plan, Step, plan};
use nodes::NodeController;

/// Upstream: `UpdateWorkerSize`, `pkg/controller/tainteviction/taint_eviction.go`.
const NODE_WORKERS: usize = 8;
/// Upstream has eight for pods, too, but deletes each in a goroutine of its own once its time has come: a node that is
/// lost has many at the same moment. A bound leaves the apiserver room for the heartbeats of the other nodes.
const POD_WORKERS: usize = 64;
/// So many nodes may lose their pods in any case before the brake on mass deletion holds others back.
const LEAST: usize = 10;

/// The operator as a process.
pub struct TaintEvictionOperator;

impl Operator for TaintEvictionOperator {
    const NAMES: Names = Names {
        operator: "taint-eviction-operator",
        controller: "taint-eviction-controller",
        event_source: "taint-eviction-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let of_nodes = setup.queue("noexec_taint_node", Backoff::default());
        let of_pods = setup.queue("noexec_taint_pod", Backoff::default());
        let (caches, Informers { mut nodes, mut pods, need }) = Caches::new();
        let caches = Arc::new(caches);
        nodes.on_change(setup.effects(&of_nodes).of(&caches, Caches::node_changed));
        pods.on_change(setup.effects(&of_pods).of(&caches, Caches::pod_changed));
        setup.watch(nodes);
        setup.watch_on_nodes(pods, &need);
        let writer = Writer {
            control: setup.control(&of_pods),
            recorder: setup.recorder(),
            metrics: DeletionMetrics::register(setup.metrics()),
            clock: setup.clock(),
            evictions: Arc::clone(&caches.evictions),
        };
        let limits = Limits { share: flags.mass_deletion_share, least: LEAST };
        let ctx = setup.context(&of_pods);
        let brake = Arc::new(Brake::new(setup, ctx, limits));
        let nodes = NodeController {
            caches: Arc::clone(&caches),
            pods: of_pods.clone(),
            clock: setup.clock(),
            decisions: setup.decisions(&of_nodes),
            brake: Arc::clone(&brake),
        };
        let (clock, decisions) = (setup.clock(), setup.decisions(&of_pods));
        setup.work(Arc::new(nodes), &of_nodes, NODE_WORKERS);
        setup.work(Arc::new(PodController { caches, writer, brake, clock, decisions }), &of_pods, POD_WORKERS);
    }
}

/// Syncs pods.
struct PodController {
    caches: Arc<Caches>,
    writer: Writer,
    brake: Arc<Brake<Text>>,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for PodController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = plan(&observed, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
        if let Some(wait) = self.hold_back(key, &plan) {
            return Ok(wait);
        }
        let Outcome { next, error } = self.writer.apply(&observed, plan).await;
        match error {
            Some(error) => Err(error),
            None => Ok(Requeue::earliest([next.map(|left| (left, "the end of its toleration"))])),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe(key).iter().map(|observed| stage(&plan(observed, self.clock.now()))).collect()
    }
}

impl PodController {
    /// When to look again at a pod whose deletion has to wait.
    fn hold_back(&self, key: &Key, plan: &Plan) -> Option<Requeue> {
        let Step::Evict(eviction) = &plan.step else { return None };
        let nodes = |_| self.caches.nodes.len();
        let may_go = eviction.is_explained || !eviction.delete;
        if may_go { None } else { self.brake.ask(key, "nodes", &eviction.pod.node, nodes) }
    }
}
