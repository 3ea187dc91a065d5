//! Executes a plan: events about a node, its conditions or its taints, its labels; the conditions of pods; and the
//! result of a look at all nodes.
//!
//! Left out: upstream's five tries at once. The queue tries a failed key again.

use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::{Key, Kind, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::{NODES, PODS};
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, Patch, Preconditions, Written, aggregate};
use shared::runtime::events::{EventType, Recorder};
use shared::runtime::queue::{Cause, Queue};

use crate::metrics::NodeMetrics;
use crate::objects::{Node, Pod};
use crate::observe::{Caches, Observed, ObservedPods};
use crate::plan::pods::PodsPlan;
use crate::plan::round::RoundPlan;
use crate::plan::{Change, Plan, Tell};
use crate::status::{labels_patch, not_ready_status, silent_status, taints_patch};

/// The reason of events about nodes that became Unknown, and about their pods.
const NODE_NOT_READY: &str = "NodeNotReady";
const REGISTERED_NODE: &str = "RegisteredNode";
const REMOVING_NODE: &str = "RemovingNode";

/// Writes nodes.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: NodeMetrics,
    pub(crate) clock: Clock,
    pub(crate) caches: Arc<Caches>,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// All errors; the other writes were sent.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan for a node.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { key, node, known: _, renewed: _, is_all_disrupted: _ } = observed;
        let Plan { tell, change, labels, reason: _ } = plan;
        if let Some(tell) = tell {
            self.tell(key, tell);
        }
        let Some(node) = node else { return Outcome { error: None } };
        let mut errors = Vec::new();
        match change {
            Change::None => errors.extend(self.label(node, &labels).await.err()),
            Change::Silence { conditions, was_ready } => {
                errors.extend(self.silence(node, &conditions, was_ready).await.err());
                errors.extend(self.label(node, &labels).await.err());
            }
            Change::Taint { add, remove, ends_turn } => {
                // Labels go along: a new node needs both.
                let body = taints_patch(node, (&add, &remove), &labels, self.clock.now());
                let tainted = self.write(node, this_state(node), Patch::merge(&body)).await.context("change taints");
                if ends_turn && matches!(tainted, Ok(true)) {
                    self.caches.memory.had_its_turn(key);
                    self.metrics.evicted(&node.zone());
                }
                errors.extend(tainted.err());
            }
        }
        Outcome { error: aggregate(errors).err() }
    }

    async fn label(&self, node: &Node, labels: &[(&'static str, Text)]) -> anyhow::Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        let patch = Patch::merge(&labels_patch(labels));
        self.write(node, node.metadata.uid.into(), patch).await.map(drop).context("change labels")
    }

    /// Upstream: `tryUpdateNodeHealth`, and `RecordNodeStatusChange`, `pkg/controller/util/node/controller_utils.go`.
    async fn silence(&self, node: &Node, conditions: &[&str], was_ready: bool) -> anyhow::Result<()> {
        let body = silent_status(node, conditions, self.clock.now());
        let patch = Patch::strategic(&body).on_status();
        let is_there = self.write(node, this_state(node), patch).await.context("change conditions")?;
        if is_there && was_ready {
            let name = node.metadata.name();
            let message = format!("Node {name} status is now: {NODE_NOT_READY}");
            self.event(&node.metadata.key, node.metadata.uid, NODE_NOT_READY, message);
        }
        Ok(())
    }

    /// Gives whether the node is still there.
    async fn write(&self, node: &Node, state: Preconditions, patch: Patch) -> Result<bool, ApiError> {
        let (key, uid) = (&node.metadata.key, node.metadata.uid);
        let written = self.control.for_key(key, uid).patch(&NODES, key, state, patch).await;
        if written.is_ok() {
            tracing::info!(node = %key, "changed the node");
        }
        is_there(written)
    }

    /// Upstream: `RecordNodeEvent`, `pkg/controller/util/node/controller_utils.go`.
    fn tell(&self, key: &Key, tell: Tell) {
        let name = key.name();
        match tell {
            Tell::Registered { uid } => {
                self.caches.memory.register(key, uid);
                let message = format!("Node {name} event: Registered Node {name} in Controller");
                self.event(key, uid, REGISTERED_NODE, message);
            }
            Tell::Removed { uid, was_told } => {
                self.caches.memory.forget(key, uid);
                self.control.forget(key, Some(uid));
                if was_told {
                    let message = format!("Node {name} event: Removing Node {name} from Controller");
                    self.event(key, uid, REMOVING_NODE, message);
                }
            }
        }
    }

    /// As upstream's, an event names the node without its version.
    fn event(&self, key: &Key, uid: Uid, reason: &'static str, message: String) {
        let resource_version = ResourceVersion::default();
        let about = ObjectReference { resource: NODES, key: key.clone(), uid, resource_version };
        self.recorder.event(&about, EventType::Normal, reason, message);
    }

    /// Executes the plan for the pods of a node.
    pub(crate) async fn apply_pods(&self, observed: &ObservedPods, plan: PodsPlan) -> Outcome {
        let ObservedPods { node, is_marked: _ } = observed;
        let PodsPlan { mark, reason: _ } = plan;
        let mut errors = Vec::new();
        for pod in &mark {
            errors.extend(self.mark(node, pod).await.err());
        }
        if errors.is_empty() && node.is_lost() {
            self.caches.memory.mark(node);
        }
        Outcome { error: aggregate(errors).err() }
    }

    /// Upstream: `MarkPodsNotReady`, `pkg/controller/util/node/controller_utils.go`.
    async fn mark(&self, node: &Node, pod: &Pod) -> anyhow::Result<()> {
        let (key, uid) = (&pod.metadata.key, pod.metadata.uid);
        let state = Preconditions { uid, resource_version: Some(pod.metadata.resource_version) };
        let patch = Patch::strategic(&not_ready_status(self.clock.now())).on_status();
        let control = self.control.for_key(&node.metadata.key, node.metadata.uid);
        let written = control.patch(&PODS, key, state, patch).await;
        if is_there(written).with_context(|| format!("mark {key} as not ready"))? {
            tracing::info!(pod = %key, node = %node.metadata.key, "the pod is not ready, as its node is lost");
            let message = "Node is not ready".to_owned();
            self.recorder.event(&pod.reference(), EventType::Warning, NODE_NOT_READY, message);
        }
        Ok(())
    }
}

/// Executes the plan of a round.
pub(crate) fn apply_round(caches: &Caches, nodes: &Queue, metrics: &NodeMetrics, plan: RoundPlan) {
    let RoundPlan { zones, turns, start_over, sync, next: _, reason: _ } = plan;
    metrics.show(&caches.memory.zones().zones, &zones.zones);
    caches.memory.look(zones, &turns, start_over);
    for node in &sync {
        nodes.add(node, Cause::Event);
    }
}

/// A decision on conditions or taints is about exactly the state that was read.
fn this_state(node: &Node) -> Preconditions {
    Preconditions { uid: node.metadata.uid, resource_version: Some(node.metadata.resource_version) }
}

/// An object that is gone needs no more writes.
fn is_there(written: Result<Written, ApiError>) -> Result<bool, ApiError> {
    match written {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}
