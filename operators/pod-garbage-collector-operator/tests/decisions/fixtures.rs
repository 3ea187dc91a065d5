//! Pods and nodes in a line.

use std::sync::Arc;

use pod_garbage_collector_operator::objects::{Node, Pod};
use pod_garbage_collector_operator::observe::Observed;
use serde_json::json;
use shared::api::object::Key;
use shared::testing::{ObjectBuilder, object};

/// A pod of this phase, bound to this node.
pub(crate) fn pod(name: &str, node: &str, phase: &str) -> ObjectBuilder {
    shared::testing::pod(name).node(node).phase(phase)
}

pub(crate) fn evicted(pod: ObjectBuilder) -> ObjectBuilder {
    pod.set(&["status", "reason"], "Evicted")
}

pub(crate) fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("").ready()
}

pub(crate) fn not_ready(node: ObjectBuilder) -> ObjectBuilder {
    node.set(&["status", "conditions"], json!([{ "type": "Ready", "status": "False" }]))
}

/// Adds the taint that says that it has failed for good, with any effect.
pub(crate) fn tainted(node: ObjectBuilder, effect: &str) -> ObjectBuilder {
    let taints = json!([
        { "key": "node.kubernetes.io/unreachable", "effect": "NoExecute" },
        { "key": "node.kubernetes.io/out-of-service", "value": "any", "effect": effect },
    ]);
    node.set(&["spec", "taints"], taints)
}

/// What is observed where caches and apiserver agree.
pub(crate) fn observed(pods: &[ObjectBuilder], nodes: &[ObjectBuilder]) -> Observed {
    let pods: Vec<Arc<Pod>> = pods.iter().map(ObjectBuilder::build).collect();
    let nodes: Vec<Arc<Node>> = nodes.iter().map(ObjectBuilder::build).collect();
    let out_of_service = nodes.iter().filter(|node| node.is_out_of_service());
    let out_of_service = out_of_service.map(|node| node.metadata.name().into()).collect();
    Observed { key: Key::new("", "round"), pods, nodes, out_of_service }
}
