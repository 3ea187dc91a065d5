//! Which pods of a lost node are marked.

use std::sync::Arc;

use node_lifecycle_operator::objects::{Node, Pod};
use node_lifecycle_operator::observe::ObservedPods;
use node_lifecycle_operator::plan::pods::{next_pods, plan_pods};
use serde_json::json;
use shared::testing::{ObjectBuilder, pod};

use crate::fixtures::of;

fn observed(node: &ObjectBuilder, is_marked: bool) -> ObservedPods {
    ObservedPods { node: node.build::<Node>(), is_marked }
}

/// Upstream: `TestMonitorNodeHealthMarkPodsNotReady` and `MarkPodsNotReady`.
#[test]
fn pods_of_a_lost_node_are_marked_unless_they_are_not_ready_already() {
    let of_status = |name: &str, status: &str| {
        let conditions = json!([{ "type": "Initialized", "status": "True" }, { "type": "Ready", "status": status }]);
        pod(name).set(&["status", "conditions"], conditions)
    };
    let pods = [of_status("a", "True"), of_status("b", "False"), of_status("c", "Unknown"), pod("d")];
    let pods: Vec<Arc<Pod>> = pods.iter().map(ObjectBuilder::build).collect();
    let plan = plan_pods(&pods);
    assert_eq!(plan.to_string(), "mark default/a, default/c (its kubelet is lost)");
}

#[test]
fn pods_are_listed_once_for_each_loss() {
    let row = |node: &ObjectBuilder, is_marked: bool, expected: &str| {
        assert_eq!(next_pods(&observed(node, is_marked)).stage().text, expected);
    };
    row(&of("Unknown"), false, "list pods (its kubelet is lost)");
    row(&of("Unknown"), true, "mark no pods (they were marked when its kubelet was lost)");
    for there in ["True", "False", ""] {
        row(&of(there), false, "mark no pods (its kubelet is not lost)");
    }
    // No kubelet was ever there.
    let conditions = json!([{ "type": "Ready", "status": "Unknown", "reason": "NodeStatusNeverUpdated" }]);
    let never = of("Unknown").set(&["status", "conditions"], conditions);
    row(&never, false, "mark no pods (its kubelet is not lost)");
}
