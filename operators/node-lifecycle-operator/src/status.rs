//! The patches of nodes and pods: conditions, taints and labels. The apiserver keeps conditions of other types.

use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use shared::api::condition::{FALSE, UNKNOWN};
use shared::api::intern::Text;
use shared::api::raw::{RawObject, raw_of};
use shared::api::taint::{KnownTaint, Taint, taints_spec};
use shared::api::time::Time;

use crate::objects::{NEVER_UPDATED, Node, READY, STATUS_UNKNOWN};

const STOPPED: &str = "Kubelet stopped posting node status.";
const NEVER: &str = "Kubelet never posted node status.";

/// The strategic merge patch of `/status` that sets these conditions of a node to Unknown.
///
/// Upstream: `tryUpdateNodeHealth`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
pub fn silent_status(node: &Node, conditions: &[&str], now: Timestamp) -> Value {
    let now = Time::of(now);
    let unknown = |type_: &&str| {
        let (reason, message) =
            if node.condition(type_).is_some() { (STATUS_UNKNOWN, STOPPED) } else { (NEVER_UPDATED, NEVER) };
        let mut condition = json!({
            "type": type_, "status": UNKNOWN, "reason": reason, "message": message, "lastTransitionTime": now,
        });
        if let (NEVER_UPDATED, Some(created)) = (reason, node.metadata.creation) {
            condition["lastHeartbeatTime"] = json!(created);
        }
        condition
    };
    json!({ "status": { "conditions": conditions.iter().map(unknown).collect::<Vec<Value>>() } })
}

/// The strategic merge patch of `/status` that marks a pod as not ready.
///
/// Upstream: `MarkPodsNotReady`, `pkg/controller/util/node/controller_utils.go`.
pub fn not_ready_status(now: Timestamp) -> Value {
    let condition = json!({ "type": READY, "status": FALSE, "lastTransitionTime": Time::of(now) });
    json!({ "status": { "conditions": [condition] } })
}

/// The merge patch of all taints of a node, and of labels.
pub fn taints_patch(
    node: &Node,
    (add, remove): (&[KnownTaint], &[KnownTaint]),
    labels: &[(&'static str, Text)],
    now: Timestamp,
) -> Box<RawValue> {
    let new = |taint: &KnownTaint| {
        raw_of(&json!({ "key": taint.key, "effect": taint.effect.as_str(), "timeAdded": Time::of(now) }))
    };
    let stays = |taint: &Taint| !remove.iter().chain(add).any(|ours| ours.is(taint));
    let mut patch = RawObject::default();
    patch.insert("spec", raw_of(&taints_spec(&node.taints, stays, add.iter().map(new))));
    if !labels.is_empty() {
        patch.insert("metadata", raw_of(&labels_metadata(labels)));
    }
    raw_of(&patch)
}

/// The merge patch of labels.
///
/// Upstream: `AddOrUpdateLabelsOnNode`, `pkg/controller/controller_utils.go`.
pub fn labels_patch(labels: &[(&'static str, Text)]) -> Value {
    json!({ "metadata": labels_metadata(labels) })
}

fn labels_metadata(labels: &[(&'static str, Text)]) -> Value {
    let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), json!(value)));
    json!({ "labels": labels.collect::<Map<String, Value>>() })
}
