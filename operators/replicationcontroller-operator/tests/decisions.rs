//! The decisions in which a `ReplicationController` differs. Those that it shares with ReplicaSets are tested in the
//! replicaset-operator.

use std::sync::Arc;

use replicationcontroller_operator::apply::Outcome;
use replicationcontroller_operator::objects::ReplicationController;
use replicationcontroller_operator::observe::Observed;
use replicationcontroller_operator::plan::plan;
use replicationcontroller_operator::status::next_status;
use serde_json::json;
use shared::api::object::Kind;
use shared::api::owner::adopt_patch;
use shared::api::pod::creation::pod_body;
use shared::controllers::replicas::ReplicaOwner;
use shared::controllers::replicas::pod::Pod;
use shared::testing::{NOW, ObjectBuilder, object, pod, uid};

fn web(replicas: i32) -> ObjectBuilder {
    object("v1", "ReplicationController", "web")
        .set(&["spec", "replicas"], replicas)
        .set(&["spec", "selector"], json!({ "app": "web" }))
        .set(&["spec", "template"], json!({ "metadata": { "labels": { "app": "web" } }, "spec": {} }))
}

fn own(name: &str) -> ObjectBuilder {
    pod(name).label("app", "web").owned_by(&*web(0).build::<ReplicationController>())
}

fn observed(web: &ObjectBuilder, pods: &[ObjectBuilder]) -> Observed<ReplicationController> {
    let pods: Vec<Arc<Pod>> = pods.iter().map(ObjectBuilder::build).collect();
    let (rejections, ended) = Default::default();
    Observed { owner: web.build(), pods, related: Vec::new(), outstanding: None, rejections, ended }
}

#[track_caller]
fn check(web: &ObjectBuilder, pods: &[ObjectBuilder], expected: &str) {
    assert_eq!(plan(&observed(web, pods), NOW).to_string(), expected);
}

#[test]
fn the_selector_is_a_plain_map() {
    check(
        &web(3),
        &[own("a"), pod("b").label("app", "web")],
        "adopt b (selected, and nobody's); create 1 (2 of 3 active)",
    );
    check(&web(1), &[own("a").label("app", "db"), pod("b")], "release a (selected no more); create 1 (0 of 1 active)");
    check(&web(0).set(&["spec", "selector"], json!(null)), &[pod("a")], "nothing (0 of 0 active)");
}

#[test]
fn pods_that_share_a_node_are_not_preferred() {
    let ready = |name: &str, node: &str| own(name).node(node).ready();
    let pods = [ready("a", "one"), ready("b", "one"), ready("c", "two").deletion_cost("-1")];
    check(&web(2), &pods, "delete c (lower deletion cost)");
}

#[test]
fn the_status_does_not_count_terminating_pods() {
    let observed = observed(&web(1), &[own("a").ready(), own("b").terminating()]);
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
    let owner = web(1).build::<ReplicationController>();
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
