//! Which taints and tolerations are read, and what else of pods is.

use std::sync::Arc;

use serde_json::json;
use shared::api::taint::Taint;
use shared::testing::{object, pod};
use taint_eviction_operator::objects::{Node, Pod};

/// Upstream: `TestFilterNoExecuteTaints`.
#[test]
fn of_a_nodes_taints_those_count_that_evict_pods() {
    let taints = json!([
        { "key": "one", "value": "one", "effect": "NoExecute" },
        { "key": "two", "value": "two", "effect": "NoSchedule" },
        { "key": "three", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" },
    ]);
    let node = object("v1", "Node", "a").namespace("").set(&["spec", "taints"], taints);
    let read: Arc<Node> = node.build();
    assert_eq!(read.taints.iter().map(Taint::to_string).collect::<Vec<_>>(), ["one=one:NoExecute", "three:NoExecute"]);
    for none in [json!(null), json!([])] {
        let read: Arc<Node> = node.clone().set(&["spec", "taints"], none).build();
        assert!(!read.evicts_pods());
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
