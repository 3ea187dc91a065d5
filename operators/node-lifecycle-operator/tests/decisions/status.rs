//! The conditions, taints and labels that are written.

use std::sync::Arc;

use node_lifecycle_operator::objects::Node;
use node_lifecycle_operator::status::{labels_patch, not_ready_status, silent_status, taints_patch};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::taint::{KnownTaint, NOT_READY, ServedTaint, UNREACHABLE};
use shared::testing::NOW;

use crate::fixtures::{of, tainted};

const NOW_TEXT: &str = "2026-01-01T12:00:00Z";

/// Upstream: `TestMonitorNodeHealthUpdateStatus`.
#[test]
fn a_condition_says_whether_the_kubelet_has_stopped_or_never_started() {
    let node: Arc<Node> = of("True").build();
    let stopped = json!({
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.", "lastTransitionTime": NOW_TEXT,
    });
    let never = json!({
        "type": "PIDPressure", "status": "Unknown", "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.", "lastTransitionTime": NOW_TEXT, "lastHeartbeatTime": NOW_TEXT,
    });
    let expected = json!({ "status": { "conditions": [stopped, never] } });
    assert_eq!(silent_status(&node, &["Ready", "PIDPressure"], NOW), expected);
}

#[test]
fn taints_of_others_stay_as_they_are() {
    let strange = json!({ "key": "own", "effect": "NoSchedule", "newer": { "than": "this" } });
    let gone = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "value": "any" });
    let other = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    let node: Arc<Node> = of("Unknown").set(&["spec", "taints"], json!([strange, gone, other])).build();
    let add = [KnownTaint::no_execute(UNREACHABLE)];
    let remove = [KnownTaint::no_execute(NOT_READY)];
    let patch = |node: &Node, taints, labels| -> Value {
        serde_json::from_str(taints_patch(node, taints, labels, NOW).get()).unwrap()
    };
    let added = json!({ "key": UNREACHABLE, "effect": "NoExecute", "timeAdded": NOW_TEXT });
    assert_eq!(patch(&node, (&add, &remove), &[]), json!({ "spec": { "taints": [strange, other, added] } }));
    let none: Arc<Node> = tainted(of("True"), &["unreachable:NoExecute"]).build();
    assert_eq!(patch(&none, (&[], &add), &[]), json!({ "spec": { "taints": [] } }));
    let labelled = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "taints": [] } });
    assert_eq!(patch(&none, (&[], &add), &[("a", Text::new("b"))]), labelled);
    assert!(size_of::<ServedTaint>() <= 56, "{} bytes", size_of::<ServedTaint>());
}

#[test]
fn a_pod_keeps_the_rest_of_its_condition_and_labels_are_added() {
    let condition = json!({ "type": "Ready", "status": "False", "lastTransitionTime": NOW_TEXT });
    assert_eq!(not_ready_status(NOW), json!({ "status": { "conditions": [condition] } }));
    let labels = [("a", Text::new("b"))];
    assert_eq!(labels_patch(&labels), json!({ "metadata": { "labels": { "a": "b" } } }));
}
