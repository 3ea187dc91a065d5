//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use garbage_collector_operator::controller::GarbageCollectorOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object, uid};

const SECONDS: Duration = Duration::from_secs(10);

fn add_owner(server: &Server) {
    server.add(&object("apps/v1", "ReplicaSet", "owner"));
}

fn owned(kind: &str, name: &str) -> ObjectBuilder {
    let reference = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": uid("owner").to_string(),
        "blockOwnerDeletion": true,
    });
    object("v1", kind, name).set(&["metadata", "ownerReferences"], json!([reference]))
}

fn add_dependents(server: &Server) {
    server.add(&owned("Pod", "p"));
    server.add(&owned("ConfigMap", "c"));
    server.add(&object("v1", "ConfigMap", "free"));
}

/// What a deletion leaves that waits for the collector.
fn delete_with(server: &Server, finalizer: &str) {
    server.change("replicasets", "default/owner", |owner| {
        owner["metadata"]["finalizers"] = json!([finalizer]);
        owner["metadata"]["deletionTimestamp"] = NOW.to_string().into();
    });
}

#[test]
fn survives_a_kill_before_any_write_in_background_deletion() {
    test(async {
        let life = [
            Do(add_owner),
            Do(add_dependents),
            Pass(SECONDS),
            Do(|server| server.delete("replicasets", "default/owner")),
            Pass(SECONDS),
            Do(Server::run_pods),
            Pass(SECONDS),
        ];
        let server = survives_kills::<GarbageCollectorOperator>(&[], &life).await;
        assert_eq!((server.keys("pods").len(), server.keys("configmaps")), (0, vec!["default/free".to_owned()]));
    });
}

#[test]
fn survives_a_kill_before_any_write_in_foreground_deletion() {
    test(async {
        let life = [
            Do(add_owner),
            Do(add_dependents),
            Pass(SECONDS),
            Do(|server| delete_with(server, "foregroundDeletion")),
            Pass(SECONDS),
            Do(Server::run_pods),
            Pass(SECONDS),
        ];
        let server = survives_kills::<GarbageCollectorOperator>(&[], &life).await;
        assert_eq!((server.keys("pods").len(), server.keys("replicasets").len()), (0, 0));
        assert_eq!(server.writes().last().unwrap(), "patch replicasets default/owner");
    });
}

#[test]
fn survives_a_kill_before_any_write_while_it_orphans() {
    test(async {
        let life = [
            Do(add_owner),
            Do(add_dependents),
            Pass(SECONDS),
            Do(|server| delete_with(server, "orphan")),
            Pass(SECONDS),
        ];
        let server = survives_kills::<GarbageCollectorOperator>(&[], &life).await;
        assert_eq!((server.keys("pods").len(), server.keys("replicasets").len()), (1, 0));
        assert_eq!(server.get("pods", "default/p").unwrap()["metadata"]["ownerReferences"], json!([]));
    });
}

#[test]
fn a_dependent_that_gets_a_new_owner_at_the_last_moment_stays() {
    test(async {
        let server = Server::new();
        add_owner(&server);
        add_dependents(&server);
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        let held = server.on("delete", "configmaps").hold();
        server.delete("replicasets", "default/owner");
        held.arrived().await;
        server.add(&object("apps/v1", "ReplicaSet", "next"));
        server.change("configmaps", "default/c", |map| {
            map["metadata"]["ownerReferences"][0]["name"] = "next".into();
            map["metadata"]["ownerReferences"][0]["uid"] = uid("next").to_string().into();
        });
        held.release();
        running.pass(SECONDS).await;
        assert_eq!(server.keys("configmaps"), ["default/c", "default/free"]);
    });
}

/// A Lease that goes with `node`.
fn lease(name: &str, namespace: &str) -> ObjectBuilder {
    let reference = json!({ "apiVersion": "v1", "kind": "Node", "name": "node", "uid": uid("node").to_string() });
    let lease = object("coordination.k8s.io/v1", "Lease", name).namespace(namespace);
    lease.set(&["metadata", "ownerReferences"], json!([reference]))
}

fn leases(server: &Server) -> Vec<String> {
    server.keys("leases")
}

#[test]
fn the_lease_of_a_node_goes_with_it_although_nobody_watches_it() {
    test(async {
        let server = Server::new();
        server.add(&object("v1", "Node", "node"));
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        server.add(&lease("kubelet", "kube-node-lease"));
        server.add(&lease("other", "elsewhere"));
        running.pass(SECONDS).await;
        let lists = server.count("list leases");
        for time in ["12:00:00.000000Z", "12:00:10.000000Z"] {
            server.change("leases", "kube-node-lease/kubelet", |lease| lease["spec"]["renewTime"] = time.into());
        }
        running.pass(SECONDS).await;
        assert_eq!(server.count("list leases"), lists);
        server.delete("nodes", "node");
        running.pass(SECONDS).await;
        assert_eq!(leases(&server), [""; 0]);
        assert_eq!(server.count("list leases"), lists + 1);
    });
}

#[test]
fn the_lease_of_a_node_that_went_while_nobody_looked_goes_at_the_start() {
    test(async {
        let server = Server::new();
        server.add(&lease("kubelet", "kube-node-lease"));
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        assert_eq!(leases(&server), [""; 0]);
    });
}
