//! A `ReplicationController` passes the suite of all that keep a number of pods; the rest is its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

#[path = "../../../shared/tests/replicas/suite.rs"]
mod suite;

use replicationcontroller_operator::apply::Outcome;
use replicationcontroller_operator::controller::ReplicationControllerOperator as Operator;
use replicationcontroller_operator::facts::QUEUE;
use replicationcontroller_operator::objects::ReplicationController as Owner;
use replicationcontroller_operator::plan::plan;
use replicationcontroller_operator::status::next_status;
use serde_json::json;
use shared::api::explain::Explanation;
use shared::api::object::Kind;
use shared::api::owner::adopt_patch;
use shared::api::pod::creation::pod_body;
use shared::controllers::replicas::ReplicaOwner;
use shared::testing::replicas::ReplicaKind;
use shared::testing::running::Running;
use shared::testing::{self, NOW, ObjectBuilder, object, uid};

use suite::fixtures::{observed, orphan, pod, relabelled, web};
use suite::plan::check;

const KIND: ReplicaKind =
    ReplicaKind { resource: "replicationcontrollers", pods: "pods default/", object: replication_controller };

/// Selects `app=web`; its template has a label more.
fn replication_controller(name: &str, replicas: i32) -> ObjectBuilder {
    let labels = json!({ "app": "web", "tier": "front" });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [] } });
    let spec = json!({ "replicas": replicas, "selector": { "app": "web" }, "template": template });
    object("v1", "ReplicationController", name).set(&["spec"], spec)
}

fn why(running: &Running, name: &str) -> Explanation {
    running.why(&format!("/api/v1/namespaces/default/replicationcontrollers/{name}"))
}

#[test]
fn the_selector_is_a_plain_map() {
    check(&web(3), &[pod("a"), orphan("b")], "adopt b (selected, and nobody's); create 1 (2 of 3 active)");
    check(&web(1), &[relabelled("a"), testing::pod("b")], "release a (selected no more); create 1 (0 of 1 active)");
    check(&web(0).set(&["spec", "selector"], json!(null)), &[testing::pod("a")], "nothing (0 of 0 active)");
}

#[test]
fn pods_that_share_a_node_are_not_preferred() {
    let ready = |name: &str, node: &str| pod(name).node(node).ready();
    let pods = [ready("a", "one"), ready("b", "one"), ready("c", "two").deletion_cost("-1")];
    check(&web(2), &pods, "delete c (lower deletion cost)");
}

#[test]
fn the_status_does_not_count_terminating_pods() {
    let observed = observed(&web(1), &[pod("a").ready(), pod("b").terminating()]);
    let claimed = plan(&observed, NOW).claim.owned;
    let status = next_status(&observed, &Outcome { claimed, ..Outcome::default() }, NOW);
    let expected = json!({
        "replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1,
        "conditions": null,
    });
    assert_eq!(serde_json::to_value(&status).unwrap(), expected);
}

#[test]
fn its_pods_are_of_the_core_group() {
    let owner = web(1).build::<Owner>();
    let reference = format!(
        r#""ownerReferences":[{{"apiVersion":"v1","kind":"ReplicationController","name":"web","uid":"{}","controller":true,"blockOwnerDeletion":true}}]"#,
        uid("web")
    );
    let adopt = shared::api::json(&adopt_patch(&owner.owner(), &[]));
    let create = pod_body(&owner.owner(), &owner.spec().template).unwrap();
    for body in [&adopt, &create] {
        let body = String::from_utf8_lossy(body);
        assert!(body.contains(&reference), "{body}");
    }
}
