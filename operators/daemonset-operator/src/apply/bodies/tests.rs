use serde_json::{Value, json};
use shared::testing::{object, uid};

use super::*;

fn set(spec: &Value) -> DaemonSet {
    let template = json!({
        "metadata": { "name": "dropped", "labels": { "app": "web" }, "annotations": { "a": "b" }, "finalizers": ["f"] },
        "spec": spec,
    });
    let json = object("apps/v1", "DaemonSet", "web")
        .annotation("deprecated.daemonset.template.generation", "3")
        .set(&["spec"], json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template }));
    serde_json::from_str(&json.json().to_string()).unwrap()
}

fn pod(spec: &Value) -> Value {
    let set = set(spec);
    let body = PodMaker::new(&set, "5d4f").unwrap().pod_on("a").unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn by_name() -> Value {
    json!({ "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["a"] }] }] })
}

fn keys(tolerations: &Value) -> Vec<&str> {
    tolerations.as_array().into_iter().flatten().map(|toleration| toleration["key"].as_str().unwrap()).collect()
}

/// Upstream: `TestCreatePodTemplate`.
#[test]
fn a_pod_has_the_template_its_labels_and_its_node() {
    let pod = pod(&json!({ "containers": [], "notKnownYet": { "x": 1.5 } }));
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": uid("web"),
        "controller": true, "blockOwnerDeletion": true }]);
    let metadata = json!({
        "generateName": "web-", "annotations": { "a": "b" }, "finalizers": ["f"], "ownerReferences": owner,
        "labels": { "app": "web", "controller-revision-hash": "5d4f", "pod-template-generation": "3" },
    });
    assert_eq!(pod["metadata"], metadata);
    assert_eq!(pod["spec"]["notKnownYet"], json!({ "x": 1.5 }));
    assert_eq!(pod["spec"]["affinity"], json!({ "nodeAffinity": { REQUIRED: by_name() } }));
    assert_eq!(keys(&pod["spec"]["tolerations"]), TOLERATED.map(|taint| taint.key));
}

/// Upstream: `TestReplaceDaemonSetPodNodeNameNodeAffinity`.
#[test]
fn of_the_affinity_only_the_required_rules_for_nodes_are_replaced() {
    let preferred = json!([{ "weight": 1, "preference": {} }]);
    let other = json!({ "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "disk", "operator": "Exists" }] }] });
    let nodes = json!({ REQUIRED: other, "preferredDuringSchedulingIgnoredDuringExecution": preferred });
    let affinity = json!({ "nodeAffinity": nodes, "podAffinity": { "notKnownYet": 1 } });
    let pod = pod(&json!({ "affinity": affinity }));
    let nodes = json!({ REQUIRED: by_name(), "preferredDuringSchedulingIgnoredDuringExecution": preferred });
    assert_eq!(pod["spec"]["affinity"], json!({ "nodeAffinity": nodes, "podAffinity": { "notKnownYet": 1 } }));
}

/// Upstream: `AddOrUpdateTolerationInPodSpec`.
#[test]
fn a_toleration_for_a_while_becomes_one_for_ever() {
    let (not_ready, pressure) = (TOLERATED[0].key, TOLERATED[2].key);
    let for_ever = json!({ "key": not_ready, "operator": "Exists", "effect": "NoExecute" });
    let mut for_a_while = for_ever.clone();
    for_a_while["tolerationSeconds"] = 300.into();
    let other = json!({ "key": pressure, "operator": "Exists" });
    let pod = pod(&json!({ "tolerations": [for_a_while, other], "hostNetwork": true }));
    let tolerations = &pod["spec"]["tolerations"];
    assert_eq!(tolerations[0], for_ever);
    assert_eq!(tolerations[1], other);
    let mut expected = vec![not_ready, pressure];
    expected.extend(TOLERATED[1..].iter().map(|taint| taint.key));
    expected.push(TOLERATED_ON_HOST.key);
    assert_eq!(keys(tolerations), expected);
}
