//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use replicationcontroller_operator::controller::ReplicationControllerOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::replicas::ReplicaKind;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{A_STATUS, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const KEY: &str = "default/web";

const KIND: ReplicaKind = ReplicaKind { resource: "replicationcontrollers", object: replication_controller };

fn replication_controller(name: &str, replicas: i32) -> ObjectBuilder {
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } });
    let spec = json!({ "replicas": replicas, "selector": { "app": "web" }, "template": template });
    object("v1", "ReplicationController", name).set(&["spec"], spec)
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| KIND.add(server, 3)),
            Do(Server::run_pods),
            Do(|server| KIND.scale(server, 1)),
            Do(Server::run_pods),
            Do(|server| KIND.scale(server, 2)),
            Do(Server::run_pods),
        ];
        let server = survives_kills::<ReplicationControllerOperator>(&[], &life).await;
        assert_eq!(server.keys("pods").len(), 2);
        assert_eq!(server.get("replicationcontrollers", KEY).unwrap()["status"]["readyReplicas"], 2);
    });
}

/// A kill forgets the back-off: then they come sooner.
#[test]
fn rejected_pods_survive_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| KIND.add(server, 3)),
            Do(|server| server.reject_pods("OutOfcpu")),
            Do(|server| server.reject_pods("OutOfcpu")),
            Pass(Duration::from_secs(10)),
            Do(Server::run_pods),
        ];
        let server = survives_kills::<ReplicationControllerOperator>(&[], &life).await;
        assert_eq!(server.keys("pods").len(), 9);
        assert!((4..=6).contains(&server.count("get pods")), "each round is looked at once");
        assert_eq!(server.get("replicationcontrollers", KEY).unwrap()["status"]["readyReplicas"], 3);
    });
}

#[test]
fn rejected_pods_are_replaced_with_back_off_unless_a_flag_says_otherwise() {
    test(async {
        let made = KIND.pods_of_a_minute_of_rejections::<ReplicationControllerOperator>(&[]).await;
        assert!((12..=40).contains(&made), "{made} pods");
        let flag = "--rejected-pod-backoff=false";
        let made = KIND.pods_of_a_third_of_a_minute_of_rejections::<ReplicationControllerOperator>(&[flag]).await;
        assert!(made > 500, "{made} pods");
    });
}

#[test]
fn only_rejected_pods_wait() {
    test(KIND.only_rejected_pods_wait::<ReplicationControllerOperator>());
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_pod() {
    test(KIND.a_creation_whose_answer_is_lost::<ReplicationControllerOperator>());
}

#[test]
fn a_watch_that_stands_still_makes_no_second_pod() {
    test(KIND.a_watch_that_stands_still::<ReplicationControllerOperator>());
}

#[test]
fn a_status_that_meets_a_newer_version_is_written_all_the_same() {
    test(KIND.a_status_that_meets_a_newer_version::<ReplicationControllerOperator>());
}

#[test]
fn a_watch_that_expires_loses_nothing() {
    test(KIND.a_watch_that_expires::<ReplicationControllerOperator>());
}

#[test]
fn a_slow_first_list_and_a_watch_that_breaks_make_no_pod_too_many() {
    test(KIND.a_slow_first_list_and_a_watch_that_breaks::<ReplicationControllerOperator>());
}

#[test]
fn pods_are_followed_only_where_there_is_a_replication_controller() {
    test(KIND.follows_pods_only_while_needed::<ReplicationControllerOperator>("pods default/"));
}

#[test]
fn the_first_one_waits_for_its_pods_however_they_come() {
    test(KIND.the_first_one_waits_for_its_pods::<ReplicationControllerOperator>());
}

#[test]
fn one_that_goes_and_comes_again_finds_its_pods() {
    test(KIND.one_that_goes_and_comes_again::<ReplicationControllerOperator>());
}

#[test]
fn why_says_what_was_done_and_that_nothing_is_left_to_do() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<ReplicationControllerOperator>(&server).await;
        KIND.add(&server, 2);
        running.pass(A_STATUS).await;
        let asked = server.requests().len();
        let why = running.why("/api/v1/namespaces/default/replicationcontrollers/web");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((key.queue.as_str(), key.key.as_str()), ("replicationmanager", KEY));
        let now: Vec<&str> = key.now.iter().map(|stage| stage.text.as_str()).collect();
        assert_eq!(now, ["nothing (2 of 2 active)"]);
        let first = key.last.iter().find(|decision| decision.stages[0].text.starts_with("create 2")).unwrap();
        let wrote: Vec<&str> = first.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["pods", "pods", "replicationcontrollers"], "{why}");
        assert_eq!(server.get("replicationcontrollers", KEY).unwrap()["status"]["replicas"], 2);
        assert_eq!(running.why("/api/v1/namespaces/default/pods/web-a").keys, [], "pods are somebody else's keys");
        assert_eq!(server.requests().len(), asked, "an answer costs no request");
    });
}
