//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use namespace_operator::controller::NamespaceOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{object, pod};

const PATH: &str = "/api/v1/namespaces/a";

/// A namespace `a` with a pod that runs and two ConfigMaps.
fn add(server: &Server) {
    let namespace = object("v1", "Namespace", "a").set(&["status", "phase"], "Active");
    server.add(&namespace.set(&["spec", "finalizers"], json!(["kubernetes"])));
    server.add(&pod("p").namespace("a"));
    for name in ["x", "y"] {
        server.add(&object("v1", "ConfigMap", name).namespace("a"));
    }
    server.add(&object("v1", "ConfigMap", "elsewhere"));
}

fn delete(server: &Server) {
    server.delete("namespaces", "a");
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life =
            [Do(add), Do(delete), Pass(Duration::from_secs(15)), Do(Server::run_pods), Pass(Duration::from_secs(120))];
        let server = survives_kills::<NamespaceOperator>(&[], &life).await;
        assert!(server.get("namespaces", "a").is_none());
        assert_eq!((server.keys("configmaps"), server.keys("pods").len()), (vec!["default/elsewhere".to_owned()], 0));
    });
}

#[test]
fn a_namespace_stays_for_what_a_finalizer_keeps() {
    test(async {
        let server = Server::new();
        add(&server);
        server.change("configmaps", "a/x", |map| map["metadata"]["finalizers"] = json!(["test"]));
        server.delete("pods", "a/p");
        delete(&server);
        let running = Running::start::<NamespaceOperator>(&server, &[]);
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(server.keys("configmaps"), ["a/x", "default/elsewhere"]);
        assert_eq!(server.count("update namespaces/finalize"), 0);
        server.change("configmaps", "a/x", |map| map["metadata"]["finalizers"] = json!([]));
        running.pass(Duration::from_secs(120)).await;
        assert!(server.get("namespaces", "a").is_none());
    });
}

#[test]
fn a_kind_that_refuses_keeps_no_other_from_being_emptied() {
    test(async {
        let server = Server::new();
        add(&server);
        server.delete("pods", "a/p");
        let refusing =
            server.on("deletecollection", "secrets").times(3).answer(500, "InternalError", "failed calling webhook");
        delete(&server);
        let running = Running::start::<NamespaceOperator>(&server, &[]);
        running.pass(Duration::from_secs(6)).await;
        assert_eq!(server.keys("configmaps"), ["default/elsewhere"]);
        running.pass(Duration::from_secs(120)).await;
        assert!(server.get("namespaces", "a").is_none());
        assert_eq!(refusing.count(), 3);
    });
}

#[test]
fn it_says_why_a_namespace_is_still_there() {
    test(async {
        let server = Server::new();
        add(&server);
        server.change("configmaps", "a/x", |map| map["metadata"]["finalizers"] = json!(["test"]));
        server.delete("pods", "a/p");
        let running = Running::start::<NamespaceOperator>(&server, &[]);
        running.at_rest().await;
        assert_eq!(running.why(PATH).keys[0].now, []);
        delete(&server);
        running.pass(Duration::from_secs(6)).await;

        let requests = server.requests();
        let [first, again] = [(); 2].map(|()| running.why(PATH));
        assert_eq!((server.requests(), &first), (requests, &again), "who asks changes nothing");
        let [key] = &first.keys[..] else { panic!("{first}") };
        assert_eq!((key.queue.as_str(), key.key.as_str()), ("namespace", "a"));
        let [now] = &key.now[..] else { panic!("{first}") };
        let since = json!(now.reason["beingDeleted"]["since"]);
        let expected = format!("read live, then delete all content (being deleted since {})", since.as_str().unwrap());
        assert_eq!(now.text, expected);
        let last = &key.last[0];
        let texts: Vec<&str> = last.stages.iter().map(|stage| stage.text.as_str()).collect();
        let [plan, content, next] = texts[..] else { panic!("{first}") };
        assert_eq!(plan, "empty (is being deleted)");
        assert!(content.starts_with("delete pods, then "), "{content}");
        assert_eq!(next, "again after 8s (1 configmaps remain; finalizer test in 1)");
        let remains =
            json!({ "waitsForPods": false, "objects": { "configmaps": 1 }, "finalizers": { "test": 1 }, "more": 0 });
        assert_eq!(last.stages[2].reason, json!({ "notEmpty": remains }));
        let wrote: Vec<&str> = last.wrote.iter().map(|version| version.object.as_str()).collect();
        assert!(!wrote.is_empty() && wrote.iter().all(|object| *object == "a"), "{first}");
        let timer = key.standing.timer.as_ref().unwrap();
        assert_eq!(timer.purpose, "the grace period after its last change");
    });
}
