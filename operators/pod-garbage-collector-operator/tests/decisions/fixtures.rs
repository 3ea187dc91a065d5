//! Builders of pods and nodes.

use std::sync::Arc;

use pod_garbage_collector_operator::objects::{Node, Pod};
use pod_garbage_collector_operator::observe::{Bindings, Observed};
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

/// Whether a pod has this as its phase.
fn has_phase(pod: &ObjectBuilder, phases: &[&str]) -> bool {
    phases.iter().any(|phase| pod.json()["status"]["phase"] == *phase)
}

/// Whether a pod is among those that are followed.
pub(crate) fn has_ended(pod: &ObjectBuilder) -> bool {
    !has_phase(pod, &["Pending", "Running", "Unknown"])
}

/// The observation where caches and apiserver agree.
pub(crate) fn observed(pods: &[ObjectBuilder], nodes: &[ObjectBuilder]) -> Observed {
    let nodes: Vec<Arc<Node>> = nodes.iter().map(ObjectBuilder::build).collect();
    let out_of_service = nodes.iter().filter(|node| node.is_out_of_service());
    let ended = || pods.iter().filter(|pod| has_ended(pod));
    let being_deleted = pods.iter().map(ObjectBuilder::build).filter(|pod: &Arc<Pod>| pod.metadata.is_being_deleted());
    Observed {
        key: Key::new("", "round"),
        ended: ended().map(ObjectBuilder::build).collect(),
        unsuccessful: Some(ended().filter(|pod| !has_phase(pod, &["Succeeded"])).map(ObjectBuilder::build).collect()),
        stuck: being_deleted.collect(),
        out_of_service: out_of_service.map(|node| node.metadata.name().into()).collect(),
        unread: Vec::new(),
    }
}

/// The result of a search among all pods.
pub(crate) fn bindings(pods: &[ObjectBuilder], nodes: &[ObjectBuilder]) -> Bindings {
    let name = |value: &serde_json::Value| value.as_str().unwrap_or_default().into();
    let on = |pod: &ObjectBuilder| name(&pod.json()["spec"]["nodeName"]);
    let bound_to = pods.iter().map(on).collect();
    let ran_on = pods.iter().filter(|pod| pod.build::<Pod>().has_run).map(on).collect();
    let nodes = nodes.iter().map(|node| name(&node.json()["metadata"]["name"])).collect();
    Bindings { key: Key::new("", "all"), nodes, bound_to, ran_on }
}
