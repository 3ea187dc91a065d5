//! Rounds over all pods and nodes, one by one the nodes that are missing, and what does not wait for the next round.
//!
//! Left out: a queue of pods. A round is the same whatever has woken it, so it has one key.

use std::sync::Arc;
use std::time::Duration;

use shared::api::object::Key;
use shared::runtime::cache::{Cache, Change};
use shared::runtime::clock::Clock;
use shared::runtime::control::aggregate;
use shared::runtime::decisions::Decisions;
use shared::runtime::informer::InformerBuilder;
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::flags::Flags;
use crate::metrics::DeletionMetrics;
use crate::objects::{Node, Pod};
use crate::observe::Sources;
use crate::plan::{MissingPlan, Plan, plan, plan_missing};

/// Upstream: `gcCheckPeriod`, `pkg/controller/podgc/gc_controller.go`.
const PERIOD: Duration = Duration::from_secs(20);
/// How long a node may be missing. Upstream: `quarantineTime`, `pkg/controller/podgc/gc_controller.go`.
const QUARANTINE: Duration = Duration::from_secs(40);
/// What happens to many pods at once is one round's work.
const SETTLE: Duration = Duration::from_secs(1);

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
        let mut pods = InformerBuilder::<Pod>::new().build();
        let mut nodes = InformerBuilder::<Node>::new().build();
        pods.on_change(wake_for_pod(rounds.clone(), nodes.cache()));
        nodes.on_change(wake_for_node(rounds.clone()));
        let sources = Arc::new(Sources { pods: pods.cache(), nodes: nodes.cache(), control: setup.control(&rounds) });
        let metrics = DeletionMetrics::register(setup.metrics());
        let decisions = setup.decisions(&rounds);
        let of_rounds = Writer { control: setup.control(&rounds), metrics, decisions };
        let of_nodes = Writer { control: setup.control(&missing), ..of_rounds.clone() };
        let round = RoundController {
            sources: Arc::clone(&sources),
            writer: of_rounds,
            threshold: flags.terminated_pod_gc_threshold,
            missing: missing.clone(),
            clock: setup.clock(),
            decisions: setup.decisions(&rounds),
        };
        let clock = setup.clock();
        let node = MissingNodeController { sources, writer: of_nodes, clock, decisions: setup.decisions(&missing) };
        setup.watch(pods);
        setup.watch(nodes);
        let first = rounds.clone();
        setup.at_start(move || first.add(&round_key(), Cause::Event));
        setup.work(Arc::new(round), &rounds, 1);
        setup.work(Arc::new(node), &missing, 1);
    }
}

fn round_key() -> Key {
    Key::new("", "round")
}

/// Whether a pod is stuck: being deleted, where nobody can end it. Volumes may wait for it to go.
fn is_stuck(pod: &Pod, nodes: &Cache<Node>) -> bool {
    let on_node_out_of_service = || nodes.get(&Key::new("", &pod.node)).is_some_and(|node| node.is_out_of_service());
    pod.metadata.is_being_deleted() && (pod.node.is_empty() || on_node_out_of_service())
}

fn wake_for_pod(rounds: Queue, nodes: Arc<Cache<Node>>) -> impl Fn(Change<'_, Pod>) {
    move |change| {
        let is_news = match change {
            Change::Added(_) => true,
            Change::Updated { old, new: _ } => !old.metadata.is_being_deleted(),
            Change::Deleted(_) => false,
        };
        if is_news && is_stuck(change.latest(), &nodes) {
            rounds.add_after(&round_key(), SETTLE);
        }
    }
}

fn wake_for_node(rounds: Queue) -> impl Fn(Change<'_, Node>) {
    move |change| {
        let is_news = match change {
            Change::Added(node) => node.is_out_of_service(),
            Change::Updated { old, new } => new.is_out_of_service() && !old.is_out_of_service(),
            Change::Deleted(_) => true,
        };
        if is_news {
            rounds.add_after(&round_key(), SETTLE);
        }
    }
}

/// Looks at all pods.
struct RoundController {
    sources: Arc<Sources>,
    writer: Writer,
    threshold: i32,
    missing: Queue,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for RoundController {
    /// What fails is tried again in the next round, and keeps no other pod waiting. Upstream: `gc`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.sources.observe().await;
        let now = self.clock.now();
        let planned = plan(&observed, self.threshold);
        self.decisions.record(now, key, &planned);
        let Plan { delete, missing } = planned;
        for node in &missing {
            self.missing.add_after(&Key::new("", node), QUARANTINE);
        }
        self.writer.delete_all(key, delete, now).await;
        Ok(Requeue::After(PERIOD))
    }
}

/// Looks at one node that was missing for [`QUARANTINE`].
struct MissingNodeController {
    sources: Arc<Sources>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for MissingNodeController {
    /// Upstream: `gcOrphaned`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let planned = plan_missing(&self.sources.observe_missing(key).await?);
        let now = self.clock.now();
        self.decisions.record(now, key, &planned);
        if let MissingPlan::Delete(pods) = planned {
            aggregate(self.writer.delete_all(key, pods, now).await)?;
        }
        Ok(Requeue::Done)
    }
}
