//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use serde_json::json;
use serviceaccount_operator::controller::ServiceAccountOperator;
use shared::testing::apiserver::Server;
use shared::testing::object;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};

fn add_namespace(server: &Server, name: &str) {
    server.add(&object("v1", "Namespace", name).set(&["status", "phase"], "Active"));
}

fn start(server: &Server) -> Running {
    Running::start::<ServiceAccountOperator>(server, &[])
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| ["a", "b"].iter().for_each(|name| add_namespace(server, name))),
            Do(|server| server.delete("serviceaccounts", "a/default")),
            Do(|server| server.delete("namespaces", "b")),
            Do(|server| server.delete("serviceaccounts", "b/default")),
        ];
        let server = survives_kills::<ServiceAccountOperator>(&[], &life).await;
        assert_eq!(server.keys("serviceaccounts"), ["a/default"]);
    });
}

#[test]
fn an_account_that_somebody_else_creates_first_is_no_failure() {
    test(async {
        let server = Server::new();
        add_namespace(&server, "a");
        let held = server.on("create", "serviceaccounts").hold();
        let running = start(&server);
        held.arrived().await;
        server.add(&object("v1", "ServiceAccount", "default").namespace("a"));
        held.release();
        running.at_rest().await;
        assert_eq!(server.writes(), ["create serviceaccounts a/default"]);
    });
}

#[test]
fn a_creation_that_fails_is_tried_again() {
    test(async {
        let server = Server::new();
        add_namespace(&server, "a");
        server.on("create", "serviceaccounts").times(3).answer(500, "InternalError", "etcd is down");
        start(&server).at_rest().await;
        assert_eq!(server.keys("serviceaccounts"), ["a/default"]);
        assert_eq!(server.count("create serviceaccounts"), 4);
    });
}

#[test]
fn in_a_namespace_that_has_begun_to_go_one_try_is_enough() {
    test(async {
        let server = Server::new();
        add_namespace(&server, "a");
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("namespaces");
        server.change("namespaces", "a", |namespace| namespace["metadata"]["finalizers"] = json!(["test"]));
        server.delete("namespaces", "a");
        server.delete("serviceaccounts", "a/default");
        running.at_rest().await;
        assert_eq!(server.count("create serviceaccounts"), 2);
        assert!(server.keys("serviceaccounts").is_empty());
    });
}

#[test]
fn why_answers_for_a_namespace_and_for_its_account() {
    test(async {
        let server = Server::new();
        add_namespace(&server, "a");
        let running = start(&server);
        running.at_rest().await;
        let there = ["nothing (default is there)"];
        assert_eq!(running.now("/api/v1/namespaces/a"), there);
        assert_eq!(running.now("/api/v1/namespaces/a/serviceaccounts/default"), there);
        assert!(running.now("/api/v1/namespaces/a/serviceaccounts/other").is_empty());
        assert_eq!(running.now("/api/v1/namespaces/b"), ["nothing (not active)"]);
        assert_eq!(server.writes(), ["create serviceaccounts a/default"]);
    });
}
