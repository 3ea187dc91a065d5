//! Builders of pods and nodes.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, ago, object, uid};
use taint_eviction_operator::memory::Pending;
use taint_eviction_operator::objects::Pod;
use taint_eviction_operator::observe::{Observed, ObservedNode};

/// So many seconds after now.
pub(crate) fn after(seconds: i64) -> Timestamp {
    ago(-seconds)
}

/// Upstream: `createNoExecuteTaint`.
fn taint(index: u32) -> Value {
    json!({
        "key": format!("testTaint{index}"),
        "value": format!("test{index}"),
        "effect": "NoExecute",
        "timeAdded": "2020-01-01T00:00:00Z",
    })
}

/// `node1` with these taints.
pub(crate) fn node(taints: &[u32]) -> ObjectBuilder {
    let taints: Vec<Value> = taints.iter().copied().map(taint).collect();
    object("v1", "Node", "node1").namespace("").set(&["spec", "taints"], taints)
}

/// Of the taint of this number, for so many seconds. Upstream: `addToleration`.
pub(crate) fn toleration(index: u32, seconds: Option<i64>) -> Value {
    let mut toleration = taint(index);
    toleration["timeAdded"].take();
    toleration["tolerationSeconds"] = json!(seconds);
    toleration
}

/// A pod on `node1`.
pub(crate) fn pod_of(name: &str, tolerations: &[Value]) -> ObjectBuilder {
    shared::testing::pod(name).node("node1").set(&["spec", "tolerations"], tolerations.to_vec())
}

/// `pod1` on `node1`.
pub(crate) fn pod(tolerations: &[Value]) -> ObjectBuilder {
    pod_of("pod1", tolerations)
}

/// Adds the condition that marks a pod.
pub(crate) fn marked(pod: ObjectBuilder, status: &str, reason: &str) -> ObjectBuilder {
    let message = "Taint manager: deleting due to NoExecute taint";
    let condition = json!({ "type": "DisruptionTarget", "status": status, "reason": reason, "message": message });
    pod.set(&["status", "conditions"], json!([{ "type": "Ready", "status": "True" }, condition]))
}

/// The pod and its node, without a pending deletion.
pub(crate) fn observed(pod: &ObjectBuilder, node: Option<&ObjectBuilder>) -> Observed {
    let pod: Arc<Pod> = pod.build();
    Observed { key: pod.metadata.key.clone(), pod: Some(pod), node: node.map(ObjectBuilder::build), pending: None }
}

/// A pending deletion of the pod of this name for a user's taint, due after so many seconds.
pub(crate) fn pending(name: &str, seconds: i64, is_announced: bool) -> Pending {
    Pending { uid: uid(name), due: after(seconds), users: Some(after(seconds)), is_announced }
}

/// The node, whose pods have no pending deletions.
pub(crate) fn observed_node(pods: &[ObjectBuilder], node: &ObjectBuilder) -> ObservedNode {
    ObservedNode { node: node.build(), pods: pods.iter().map(|pod| observed(pod, Some(node))).collect() }
}
