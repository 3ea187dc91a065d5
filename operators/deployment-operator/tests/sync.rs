//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use deployment_operator::controller::DeploymentOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::object;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};

const KEY: &str = "default/web";

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": image }] } })
}

fn add(server: &Server) {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    let spec = json!({
        "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": template("old"),
        "strategy": rolling, "revisionHistoryLimit": 0, "progressDeadlineSeconds": 600,
    });
    server.add(&object("apps/v1", "Deployment", "web").set(&["spec"], spec));
}

fn roll_out(server: &Server) {
    server.change("deployments", KEY, |deployment| deployment["spec"]["template"] = template("new"));
}

/// Plays the replicaset-operator and its pods: every ReplicaSet has what it asks for.
fn follow(server: &Server) {
    for key in server.keys("replicasets") {
        server.change("replicasets", &key, |set| {
            let (replicas, generation) = (set["spec"]["replicas"].clone(), set["metadata"]["generation"].clone());
            set["status"] = json!({
                "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
                "fullyLabeledReplicas": replicas, "observedGeneration": generation,
            });
        });
    }
}

fn start(server: &Server) -> Running {
    Running::start::<DeploymentOperator>(server, &[])
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [Do(add), Do(follow), Do(roll_out), Do(follow), Do(follow), Do(follow), Do(follow), Do(follow)];
        let server = survives_kills::<DeploymentOperator>(&[], &life).await;
        let sets = server.list("replicasets");
        assert_eq!((sets.len(), &sets[0]["spec"]["replicas"]), (1, &json!(2)), "the old one is history");
        assert_eq!(server.get("deployments", KEY).unwrap()["status"]["updatedReplicas"], 2);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_replica_set() {
    test(async {
        let server = Server::new();
        server.on("create", "replicasets").once().lose();
        add(&server);
        start(&server).at_rest().await;
        assert_eq!(server.keys("replicasets").len(), 1);
        let status = server.get("deployments", KEY).unwrap()["status"].clone();
        assert_eq!(status["collisionCount"], json!(null), "{status}");
    });
}

#[test]
fn a_name_that_another_replica_set_has_is_a_collision() {
    test(async {
        let server = Server::new();
        add(&server);
        let held = server.on("create", "replicasets").once().hold();
        let running = start(&server);
        held.arrived().await;
        let create = server.requests().into_iter().find(|line| line.starts_with("create replicasets")).unwrap();
        let name = create.rsplit_once('/').unwrap().1;
        let other =
            json!({ "replicas": 0, "selector": { "matchLabels": { "app": "other" } }, "template": template("other") });
        server.add(&object("apps/v1", "ReplicaSet", name).set(&["spec"], other));
        held.release();
        running.at_rest().await;
        assert_eq!(server.keys("replicasets").len(), 2);
        assert_eq!(server.get("deployments", KEY).unwrap()["status"]["collisionCount"], 1);
    });
}

#[test]
fn a_replica_set_that_somebody_scales_meanwhile_is_looked_at_again() {
    test(async {
        let server = Server::new();
        add(&server);
        let running = start(&server);
        running.at_rest().await;
        let key = &server.keys("replicasets")[0];
        let held = server.on("patch", "replicasets").once().hold();
        server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = 5.into());
        held.arrived().await;
        server.change("replicasets", key, |set| set["spec"]["replicas"] = 9.into());
        held.release();
        running.at_rest().await;
        assert_eq!(server.get("replicasets", key).unwrap()["spec"]["replicas"], 5);
        assert_eq!(server.count("patch replicasets"), 2);
    });
}
