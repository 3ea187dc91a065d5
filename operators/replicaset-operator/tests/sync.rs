//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use replicaset_operator::controller::ReplicaSetOperator;
use serde_json::json;
use shared::api::explain::{Decision, KeyState, Outcome, Role, Stage, Standing};
use shared::testing::apiserver::Server;
use shared::testing::object;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};

const KEY: &str = "default/web";

fn add(server: &Server, replicas: i32) {
    add_named(server, "web", replicas);
}

fn add_named(server: &Server, name: &str, replicas: i32) {
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } });
    let spec = json!({ "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template });
    server.add(&object("apps/v1", "ReplicaSet", name).set(&["spec"], spec));
}

fn scale(server: &Server, replicas: i32) {
    server.change("replicasets", KEY, |owner| owner["spec"]["replicas"] = replicas.into());
}

fn start(server: &Server) -> Running {
    Running::start::<ReplicaSetOperator>(server, &[])
}

/// Another ReplicaSet is why pods are followed already.
async fn start_beside_another(server: &Server) -> Running {
    add_named(server, "other", 0);
    let running = start(server);
    running.at_rest().await;
    running
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| add(server, 3)),
            Do(Server::run_pods),
            Do(|server| scale(server, 1)),
            Do(Server::run_pods),
            Do(|server| scale(server, 2)),
            Do(Server::run_pods),
        ];
        let server = survives_kills::<ReplicaSetOperator>(&[], &life).await;
        assert_eq!(server.keys("pods").len(), 2);
        assert_eq!(server.get("replicasets", KEY).unwrap()["status"]["readyReplicas"], 2);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        let running = start_beside_another(&server).await;
        let lists = server.count("list pods");
        server.on("create", "pods").once().lose();
        server.hold_watches("pods");
        add(&server, 3);
        running.pass(Duration::from_secs(3)).await;
        assert_eq!(server.count("create pods"), 1, "nobody knows yet whether there is a pod");
        assert_eq!(server.count("list pods"), lists + 1, "it is looked for once");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!(server.keys("pods").len(), 3);
        assert_eq!(server.count("create pods"), 3);
    });
}

#[test]
fn a_dead_webhook_costs_no_list() {
    test(async {
        let server = Server::new();
        let running = start_beside_another(&server).await;
        let lists = || server.count("list pods") + server.count("watch pods");
        let before = lists();
        let webhook = "Internal error occurred: failed calling webhook \"dead\": connection refused";
        let refusing = server.on("create", "pods").times(8).answer(500, "InternalError", webhook);
        add(&server, 3);
        running.at_rest().await;
        assert_eq!((refusing.count(), server.keys("pods").len(), lists()), (8, 3, before));
    });
}

#[test]
fn a_watch_that_stands_still_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("pods");
        add(&server, 3);
        for replicas in [4, 3, 4] {
            running.pass(Duration::from_secs(3)).await;
            scale(&server, replicas);
        }
        assert_eq!(server.count("create pods"), 3);
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!(server.count("create pods"), 4);
        assert_eq!(server.get("replicasets", KEY).unwrap()["status"]["replicas"], 4);
    });
}

#[test]
fn a_status_that_meets_a_newer_version_is_written_all_the_same() {
    test(async {
        let server = Server::new();
        add(&server, 1);
        let held = server.on("patch", "replicasets/status").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.change("replicasets", KEY, |owner| owner["metadata"]["labels"]["new"] = "yes".into());
        held.release();
        running.at_rest().await;
        let owner = server.get("replicasets", KEY).unwrap();
        assert_eq!((&owner["status"]["replicas"], &owner["metadata"]["labels"]["new"]), (&json!(1), &json!("yes")));
    });
}

#[test]
fn a_watch_that_expires_loses_nothing() {
    test(async {
        let server = Server::new();
        add(&server, 2);
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("pods");
        server.delete("pods", &server.keys("pods")[0]);
        server.expire_watches("pods");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods")), (2, 3));
    });
}

/// `create 3 (0 of 3 active) {"replicas":{"active":0,"wanted":3}}`.
fn texts(stages: &[Stage]) -> Vec<String> {
    stages.iter().map(|Stage { text, reason }| format!("{text} {reason}")).collect()
}

#[test]
fn why_says_what_failed_what_would_be_done_now_and_when_it_is_tried_again() {
    test(async {
        let server = Server::new();
        let running = start_beside_another(&server).await;
        server.on("create", "pods").answer(403, "Forbidden", "exceeded quota: team");
        add(&server, 3);
        running.pass(Duration::from_secs(1)).await;
        let asked = server.requests().len();
        let why = running.why("/apis/apps/v1/namespaces/default/replicasets/web");
        let [KeyState { queue, key, now, last, standing }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), key.as_str(), why.role), ("replicaset", KEY, Role::Leader));
        let decided = [r#"create 3 (0 of 3 active) {"replicas":{"active":0,"wanted":3}}"#];
        assert_eq!(texts(now), decided);
        let [Decision { stages, outcome: Outcome::Failed, error: Some(error), cause: Some(cause), .. }, ..] = &last[..]
        else {
            panic!("{why}")
        };
        assert_eq!(texts(stages), decided);
        assert!(error.contains("exceeded quota: team"), "{error}");
        assert_eq!((cause.resource.as_str(), cause.object.as_str()), ("replicasets.apps", KEY));
        assert!(standing.failures > 0 && standing.next_try.is_some_and(|at| at > why.time), "{why}");
        assert_eq!(running.why("/apis/apps/v1/namespaces/default/replicasets/web").keys[0].now, *now);
        assert_eq!(server.requests().len(), asked, "an answer costs no request");
    });
}

#[test]
fn why_says_what_was_written_and_that_nothing_is_left_to_do() {
    test(async {
        let server = Server::new();
        let running = start_beside_another(&server).await;
        add(&server, 2);
        running.at_rest().await;
        let why = running.why("/apis/apps/v1/namespaces/default/replicasets/web");
        let [KeyState { now, last, standing, .. }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(texts(now), [r#"nothing (2 of 2 active) {"replicas":{"active":2,"wanted":2}}"#]);
        let first = last.iter().find(|decision| decision.stages[0].text.starts_with("create")).unwrap();
        let wrote: Vec<&str> = first.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["pods", "pods", "replicasets.apps"], "{why}");
        assert_eq!(*standing, Standing::default(), "{why}");
        assert_eq!(running.why("/apis/apps/v1/namespaces/default/replicasets/none").keys[0].now, []);
        assert_eq!(running.why("/api/v1/namespaces/default/pods/web-a").keys, [], "pods are somebody else's keys");
    });
}
