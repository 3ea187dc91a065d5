//! Executes a plan: events about a node, its conditions or its taints, its labels; the conditions of pods; and the
//! result of a look at all nodes. The memory is written here alone, apart from what the watches show.
//!
//! Upstream tries each write five times in a row; here the queue retries.

use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::{Key, Kind, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::{NODES, PODS};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{Patch, Preconditions, aggregate};
use shared::working::events::PlannedEvent;
use shared::working::queue::{Cause, Queue};

use crate::memory::{Look, Memory};
use crate::metrics::NodeMetrics;
use crate::objects::{Node, Pod};
use crate::observe::{Caches, Observed, ObservedPods, live_renewed};
use crate::plan::gap::gap;
use crate::plan::pods::PodsPlan;
use crate::plan::round::RoundPlan;
use crate::plan::{Change, Config, Plan, Registration};
use crate::status::{labels_patch, not_ready_status, silent_status, taints_patch};

/// The reason of events about nodes that became Unknown, and about their pods.
const NODE_NOT_READY: &str = "NodeNotReady";
const REGISTERED_NODE: &str = "RegisteredNode";
const REMOVING_NODE: &str = "RemovingNode";

#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) metrics: NodeMetrics,
    pub(crate) caches: Arc<Caches>,
}

impl Writer {
    /// Reads the node's Lease live. The node was heard from if the Lease was renewed, or if the apiserver may have
    /// accepted no renewals. `asked` is when the sync began.
    pub(crate) async fn ask(&self, observed: &Observed, config: &Config, asked: Timestamp) -> anyhow::Result<()> {
        let (caches, key) = (&self.caches, &observed.key);
        let renewed = live_renewed(self.ctx.control(), key).await;
        let now = self.ctx.now();
        let look = |at| Look { at, is_followed: true };
        // An apiserver that fails, or takes long to answer, may have accepted no renewal either.
        let was_away = renewed.is_err() || gap(Some(look(asked)), look(now), config).is_some();
        // The apiserver's value is newer than the cache's, whatever the node's clock says.
        let is_behind = renewed.as_ref().is_ok_and(|renewed| renewed.is_some() && *renewed != observed.renewed);
        if is_behind {
            caches.catch_up();
        }
        if is_behind || was_away {
            caches.memory.hear(key, now);
        }
        renewed.map(drop)
    }

    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let Observed { key, node, known: _, renewed: _, is_all_disrupted: _, looked: _, is_followed: _ } = observed;
        let Plan { registration, change, labels, reason: _ } = plan;
        if let Some(registration) = registration {
            self.register(key, registration);
        }
        let Some(node) = node else { return Ok(()) };
        let mut errors = Vec::new();
        match change {
            Change::None => errors.extend(self.label(node, &labels).await.err()),
            Change::Silence { conditions, was_ready } => {
                errors.extend(self.silence(node, &conditions, was_ready).await.err());
                errors.extend(self.label(node, &labels).await.err());
            }
            Change::Taint { add, remove, ends_turn } => {
                // One write for taints and labels: a new node needs both.
                let body = taints_patch(node, (&add, &remove), &labels, self.ctx.now());
                let tainted = self.write(node, Preconditions::of(&node.metadata), Patch::merge(&body)).await;
                if ends_turn && matches!(tainted, Ok(true)) {
                    self.caches.memory.end_turn(key);
                    self.metrics.evicted(&node.zone());
                }
                errors.extend(tainted.context("cannot change taints").err());
            }
        }
        aggregate(errors)
    }

    async fn label(&self, node: &Node, labels: &[(&'static str, Text)]) -> anyhow::Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        let patch = Patch::merge(&labels_patch(labels));
        self.write(node, node.metadata.uid.into(), patch).await.map(drop).context("cannot change labels")
    }

    /// Upstream: `tryUpdateNodeHealth`, and `RecordNodeStatusChange`, `pkg/controller/util/node/controller_utils.go`.
    async fn silence(&self, node: &Node, conditions: &[&str], was_ready: bool) -> anyhow::Result<()> {
        let body = silent_status(node, conditions, self.ctx.now());
        let patch = Patch::strategic(&body).on_status();
        let exists =
            self.write(node, Preconditions::of(&node.metadata), patch).await.context("cannot change conditions")?;
        if exists && was_ready {
            let name = node.metadata.name();
            let message = format!("Node {name} status is now: {NODE_NOT_READY}");
            self.event(&node.metadata.key, node.metadata.uid, NODE_NOT_READY, message);
        }
        Ok(())
    }

    /// Returns whether the node still exists.
    async fn write(&self, node: &Node, state: Preconditions, patch: Patch) -> Result<bool, ApiError> {
        let (key, uid) = (&node.metadata.key, node.metadata.uid);
        let written = self.ctx.for_key(key, uid).patch(&NODES, key, state, patch).await.unless_gone()?;
        if written.is_some() {
            tracing::info!(node = %key, "changed node");
        }
        Ok(written.is_some())
    }

    /// Upstream: `RecordNodeEvent`, `pkg/controller/util/node/controller_utils.go`.
    fn register(&self, key: &Key, registration: Registration) {
        let name = key.name();
        match registration {
            Registration::Add { uid } => {
                self.caches.memory.register(key, uid);
                let message = format!("Node {name} event: Registered Node {name} in Controller");
                self.event(key, uid, REGISTERED_NODE, message);
            }
            Registration::Remove { uid, was_reported } => {
                self.caches.memory.forget(key, uid);
                self.ctx.forget(key, Some(uid));
                if was_reported {
                    let message = format!("Node {name} event: Removing Node {name} from Controller");
                    self.event(key, uid, REMOVING_NODE, message);
                }
            }
        }
    }

    /// Posts an event. As upstream's, it names the node without its version.
    fn event(&self, key: &Key, uid: Uid, reason: &'static str, message: String) {
        let resource_version = ResourceVersion::default();
        let about = ObjectReference { resource: NODES, key: key.clone(), uid, resource_version };
        self.ctx.event(PlannedEvent::normal(about, reason, message));
    }

    /// Executes the plan for the pods of a node.
    pub(crate) async fn apply_pods(&self, observed: &ObservedPods, plan: PodsPlan) -> anyhow::Result<()> {
        let ObservedPods { node, is_marked: _ } = observed;
        let PodsPlan { mark, reason: _ } = plan;
        let mut errors = Vec::new();
        for pod in &mark {
            errors.extend(self.mark(node, pod).await.err());
        }
        if errors.is_empty() && node.is_lost() {
            self.caches.memory.mark(node);
        }
        aggregate(errors)
    }

    /// Upstream: `MarkPodsNotReady`, `pkg/controller/util/node/controller_utils.go`.
    async fn mark(&self, node: &Node, pod: &Pod) -> anyhow::Result<()> {
        let key = &pod.metadata.key;
        let patch = Patch::strategic(&not_ready_status(self.ctx.now())).on_status();
        let control = self.ctx.for_key(&node.metadata.key, node.metadata.uid);
        let marked = control.patch(&PODS, key, Preconditions::of(&pod.metadata), patch).await.unless_gone();
        if marked.with_context(|| format!("cannot mark pod {key} as not ready"))?.is_some() {
            tracing::info!(pod = %key, node = %node.metadata.key, "marked pod of a lost node as not ready");
            let message = "Node is not ready".to_owned();
            self.ctx.event(PlannedEvent::warning(pod.reference(), NODE_NOT_READY, message));
        }
        Ok(())
    }
}

pub(crate) fn apply_round(memory: &Memory, nodes: &Queue, metrics: &NodeMetrics, plan: RoundPlan) {
    let RoundPlan { zones, turns, start_over, sync, next: _, gap, reason: _ } = plan;
    if let Some((gap, report)) = gap {
        metrics.gap(gap);
        if report {
            tracing::warn!(%gap, "cannot watch nodes for longer than a grace period; no lost node is found");
        }
    }
    metrics.show(&memory.zones().zones, &zones.zones);
    memory.look(zones, &turns, start_over);
    for node in &sync {
        nodes.add(node, Cause::Event);
    }
}
