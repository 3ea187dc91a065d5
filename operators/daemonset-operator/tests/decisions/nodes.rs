//! Which nodes a DaemonSet is for, and which DaemonSets a node concerns: after upstream's `daemon_controller_test.go`.

use std::sync::Arc;

use daemonset_operator::objects::DaemonSet;
use daemonset_operator::objects::node::Node;
use daemonset_operator::observe::ObservedNode;
use daemonset_operator::plan::nodes::{Eligibility, bereft, eligibility, plan_node};
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;

use crate::fixtures::{SetBuilder, node, required, set, taint, tainted};

/// `run`, `stay` or `leave`.
fn verdict(set: &ObjectBuilder, node: &ObjectBuilder) -> &'static str {
    match eligibility(&set.build::<DaemonSet>(), &node.build::<Node>()) {
        Eligibility::Runs => "run",
        Eligibility::Stays(_) => "stay",
        Eligibility::Leaves(_) => "leave",
    }
}

/// Upstream: `TestNodeShouldRunDaemonPod`.
#[test]
fn a_set_is_for_the_nodes_that_its_template_allows() {
    let test_node = || node("test-node").label("name", "simple-daemon").label("type", "production");
    let of_type = |value: &str| {
        let expression = json!({ "key": "type", "operator": "In", "values": [value] });
        set().with_pod("affinity", required(&json!([{ "matchExpressions": [expression] }])))
    };
    let requests = json!([{ "name": "c", "resources": { "requests": { "memory": "200M" } },
        "ports": [{ "hostPort": 666 }] }]);
    for (name, set, expected) in [
        ("ShouldRunDaemonPod", set(), "run"),
        ("InsufficientResourceError, ErrPodNotFitsHostPorts", set().with_pod("containers", requests), "run"),
        ("ErrPodNotMatchHostName", set().with_pod("nodeName", "other-node"), "leave"),
        ("the same name", set().with_pod("nodeName", "test-node"), "run"),
        ("ErrNodeSelectorNotMatch", set().with_pod("nodeSelector", json!({ "name": "simple-daemon2" })), "leave"),
        ("matching selector", set().with_pod("nodeSelector", json!({ "name": "simple-daemon" })), "run"),
        ("ErrPodAffinityNotMatch", of_type("test"), "leave"),
        ("matching affinity", of_type("production"), "run"),
    ] {
        for node in [test_node(), test_node().set(&["spec", "unschedulable"], true)] {
            assert_eq!(verdict(&set, &node), expected, "{name}");
        }
    }
}

/// Upstream: `TestNoScheduleTaintedDoesntEvicitRunningIntolerantPod`, `TestNodeDaemonLaunchesToleratePod`,
/// `TestTaintPressureNodeDaemonLaunchesPod` and their like.
#[test]
fn a_taint_keeps_pods_away_or_ends_them_unless_they_tolerate_it() {
    let tolerant = |toleration: Value| set().with_pod("tolerations", json!([toleration]));
    for (set, key, effect, expected) in [
        (set(), "k", "NoSchedule", "stay"),
        (set(), "k", "NoExecute", "leave"),
        (set(), "k", "PreferNoSchedule", "run"),
        (tolerant(json!({ "key": "k", "operator": "Exists" })), "k", "NoExecute", "run"),
        (tolerant(json!({ "operator": "Exists" })), "k", "NoExecute", "run"),
        (tolerant(json!({ "key": "k", "operator": "Exists", "effect": "NoSchedule" })), "k", "NoExecute", "leave"),
        (tolerant(json!({ "key": "k", "value": "v" })), "k", "NoSchedule", "stay"),
        (tolerant(json!({ "key": "k", "operator": "Equal" })), "k", "NoSchedule", "run"),
        (tolerant(json!({ "key": "k", "operator": "Odd" })), "k", "NoSchedule", "stay"),
        (set(), "node.kubernetes.io/not-ready", "NoExecute", "run"),
        (set(), "node.kubernetes.io/not-ready", "NoSchedule", "stay"),
        (set(), "node.kubernetes.io/unreachable", "NoExecute", "run"),
        (set(), "node.kubernetes.io/disk-pressure", "NoSchedule", "run"),
        (set(), "node.kubernetes.io/memory-pressure", "NoSchedule", "run"),
        (set(), "node.kubernetes.io/pid-pressure", "NoSchedule", "run"),
        (set(), "node.kubernetes.io/unschedulable", "NoSchedule", "run"),
        (set(), "node.kubernetes.io/network-unavailable", "NoSchedule", "stay"),
        (set().with_pod("hostNetwork", true), "node.kubernetes.io/network-unavailable", "NoSchedule", "run"),
    ] {
        assert_eq!(verdict(&set, &tainted("a", key, effect)), expected, "{key}:{effect} {set:?}");
    }
    let both = json!([taint("k", "NoSchedule"), taint("l", "NoExecute")]);
    assert_eq!(verdict(&set(), &node("a").set(&["spec", "taints"], both)), "leave");
}

/// Upstream: the tests of `RequiredNodeAffinity` beside `nodeaffinity.go`.
#[test]
fn of_the_terms_of_an_affinity_one_must_match_whole() {
    let labelled = node("a").label("disk", "fast").label("cores", "8");
    let runs = |terms: Value| verdict(&set().with_pod("affinity", required(&terms)), &labelled) == "run";
    let one = |key: &str, operator: &str, values: Value| json!({ "key": key, "operator": operator, "values": values });
    let labels = |requirement: Value| json!([{ "matchExpressions": [requirement] }]);
    let fields = |requirement: Value| json!([{ "matchFields": [requirement] }]);
    for (terms, expected) in [
        (json!([]), false),
        (json!(null), false),
        (json!([{}]), false),
        (labels(one("disk", "In", json!(["slow", "fast"]))), true),
        (labels(one("disk", "NotIn", json!(["fast"]))), false),
        (labels(one("gpu", "NotIn", json!(["x"]))), true),
        (labels(one("disk", "Exists", json!(null))), true),
        (labels(one("disk", "DoesNotExist", json!(null))), false),
        (labels(one("cores", "Gt", json!(["4"]))), true),
        (labels(one("cores", "Gt", json!(["8"]))), false),
        (labels(one("cores", "Gt", json!(["-1"]))), false),
        (labels(one("cores", "Lt", json!(["9"]))), true),
        (labels(one("disk", "Lt", json!(["9"]))), false),
        (labels(one("cores", "Gt", json!(["many"]))), false),
        (labels(one("disk", "Odd", json!(["fast"]))), false),
        (labels(one("disk", "In", json!([]))), false),
        (fields(one("metadata.name", "In", json!(["a"]))), true),
        (fields(one("metadata.name", "In", json!(["b"]))), false),
        (fields(one("metadata.name", "NotIn", json!(["b"]))), true),
        (fields(one("metadata.name", "In", json!(["a", "b"]))), false),
        (fields(one("metadata.name", "Exists", json!(null))), false),
        (json!([{}, { "matchExpressions": [one("disk", "Exists", json!(null))] }]), true),
        (
            json!([{ "matchExpressions": [one("disk", "Exists", json!(null))],
                "matchFields": [one("metadata.name", "In", json!(["b"]))] }]),
            false,
        ),
    ] {
        assert_eq!(runs(terms.clone()), expected, "{terms}");
    }
    let preferred = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1 }] } });
    assert_eq!(verdict(&set().with_pod("affinity", preferred), &labelled), "run");
}

fn beside(node: &ObjectBuilder, sets: &[(&ObjectBuilder, bool)]) -> ObservedNode {
    let sets = sets.iter().map(|(set, has_pod)| (set.build::<DaemonSet>(), *has_pod)).collect::<Vec<_>>();
    ObservedNode { node: node.build::<Node>(), sets }
}

/// Upstream: `TestUpdateNode`, and `syncNodeUpdate`.
#[test]
fn a_node_concerns_the_sets_that_lack_a_pod_there_or_have_one_too_many() {
    let selective = set().with_pod("nodeSelector", json!({ "disk": "fast" }));
    let misscheduled = set().set(&["status", "numberMisscheduled"], 1);
    let (plain, fast) = (node("a"), node("a").label("disk", "fast"));
    let barred = tainted("a", "k", "NoSchedule");
    for (set, has_pod, node, expected) in [
        (&set(), false, &plain, 1),
        (&set(), true, &plain, 0),
        (&selective, false, &plain, 0),
        (&selective, true, &plain, 1),
        (&selective, false, &fast, 1),
        (&selective, true, &fast, 0),
        (&set(), false, &barred, 0),
        (&set(), true, &barred, 0),
        (&misscheduled, true, &plain, 1),
        (&misscheduled, true, &barred, 1),
        (&misscheduled, false, &barred, 0),
    ] {
        let plan = plan_node(&beside(node, &[(set, has_pod)]));
        assert_eq!(plan.sync.len(), expected, "{has_pod} {node:?} {set:?}");
    }
    let plan = plan_node(&beside(&plain, &[(&set(), false), (&selective, false)]));
    assert_eq!(plan.to_string(), "sync default/web (1 of 2 DaemonSets are concerned)");
    let lost = bereft(&beside(&plain, &[(&set(), false), (&selective, false), (&selective, true)]));
    assert_eq!(lost.len(), 2);
}

#[test]
fn states_of_a_node_that_differ_in_health_alone_are_alike() {
    let first: Arc<Node> = node("a").label("disk", "fast").build();
    let alike = |other: ObjectBuilder| first.is_alike(&other.label("disk", "fast").build::<Node>());
    let heartbeat = json!({ "conditions": [{ "type": "Ready", "status": "False" }], "allocatable": { "cpu": "1" } });
    assert!(alike(node("a").set(&["status"], heartbeat).annotation("a", "b")));
    assert!(alike(node("a").set(&["spec"], json!({ "unschedulable": true, "taints": null }))));
    assert!(alike(tainted("a", "k", "PreferNoSchedule")));
    assert!(!alike(tainted("a", "k", "NoSchedule")));
    assert!(!alike(node("a").label("zone", "b")));
}
