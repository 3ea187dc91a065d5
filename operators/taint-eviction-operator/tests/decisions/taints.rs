//! How taints and tolerations are read, and which toleration is about which taint.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::testing::{object, pod};
use taint_eviction_operator::objects::{Disruption, Node, Pod, Taint};

use crate::fixtures::marked;

/// Upstream: `TestFilterNoExecuteTaints`.
#[test]
fn of_a_nodes_taints_those_count_that_end_pods() {
    let taints = json!([
        { "key": "one", "value": "one", "effect": "NoExecute" },
        { "key": "two", "value": "two", "effect": "NoSchedule" },
        { "key": "three", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" },
    ]);
    let node = object("v1", "Node", "a").namespace("").set(&["spec", "taints"], taints);
    let read: Arc<Node> = node.build();
    assert_eq!(read.taints.iter().map(Taint::to_string).collect::<Vec<_>>(), ["one=one", "three"]);
    for none in [json!(null), json!([])] {
        let read: Arc<Node> = node.clone().set(&["spec", "taints"], none).build();
        assert!(!read.ends_pods());
    }
}

/// Whether a pod with this toleration tolerates the taint `foo=<value>`.
fn tolerates(toleration: &Value, value: &str) -> bool {
    let pod: Arc<Pod> = pod("a").set(&["spec", "tolerations"], json!([toleration])).build();
    let taint = Taint { key: "foo".into(), value: value.into() };
    pod.tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}

/// Upstream: `TestTolerationToleratesTaint`, with the feature gate for numbers on.
#[test]
fn a_toleration_is_about_a_key_values_and_an_effect() {
    let row = |toleration: Value, value: &str, expected: bool| {
        assert_eq!(tolerates(&toleration, value), expected, "{toleration} {value:?}");
    };
    row(json!({ "key": "foo", "operator": "Exists", "effect": "NoExecute" }), "", true);
    row(json!({ "key": "foo", "operator": "Exists", "effect": "NoExecute" }), "bar", true);
    row(json!({ "key": "foo", "operator": "Exists", "effect": "NoSchedule" }), "bar", false);
    row(json!({ "key": "foo", "operator": "Exists" }), "bar", true);
    row(json!({ "key": "other", "operator": "Exists", "effect": "NoExecute" }), "", false);
    row(json!({ "operator": "Exists" }), "bar", true);
    row(json!({ "key": "foo", "operator": "Equal", "value": "bar", "effect": "NoExecute" }), "bar", true);
    row(json!({ "key": "foo", "value": "bar", "effect": "NoExecute" }), "bar", true);
    row(json!({ "key": "foo", "operator": "Equal", "value": "other", "effect": "NoExecute" }), "bar", false);
    row(json!({ "key": "foo" }), "", true);
    row(json!({ "key": "foo", "operator": "In", "value": "bar" }), "bar", false);
    for (operator, value, expected) in [
        ("Lt", "99", true),
        ("Lt", "100", false),
        ("Lt", "-200", true),
        ("Gt", "101", true),
        ("Gt", "100", false),
        ("Gt", "many", false),
        ("Gt", "0200", false),
        ("Gt", "", false),
    ] {
        row(json!({ "key": "foo", "operator": operator, "value": "100", "effect": "NoExecute" }), value, expected);
    }
    for no_number in ["", "+1", "01", "-0", "1.5", "99999999999999999999"] {
        row(json!({ "key": "foo", "operator": "Gt", "value": no_number }), "100", false);
    }
}

#[test]
fn pods_that_tolerate_the_same_share_it() {
    let tolerations = json!([
        { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300 },
        { "key": "gpu", "operator": "Exists", "effect": "NoSchedule" },
    ]);
    let [a, b] = ["a", "b"].map(|name| {
        let pod: Arc<Pod> = pod(name).set(&["spec", "tolerations"], tolerations.clone()).build();
        pod
    });
    assert!(Arc::ptr_eq(&a.tolerations, &b.tolerations));
    assert_eq!(a.tolerations.len(), 1, "the other one is about another effect");
    assert!(size_of::<Pod>() <= 168, "{} bytes", size_of::<Pod>());
}

#[test]
fn a_pod_is_marked_if_the_condition_says_what_would_be_written() {
    let row = |status: &str, reason: &str, expected| {
        let pod: Arc<Pod> = marked(pod("a"), status, reason).build();
        assert_eq!(pod.disruption, expected, "{status} {reason}");
    };
    row("True", "DeletionByTaintManager", Disruption::ByTaint);
    row("True", "PreemptionByScheduler", Disruption::ForAnotherReason);
    row("False", "DeletionByTaintManager", Disruption::No);
    let without: Arc<Pod> = pod("a").build();
    assert_eq!(without.disruption, Disruption::No);
}
