//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use replicationcontroller_operator::controller::ReplicationControllerOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{object, pod};

const KEY: &str = "default/web";

fn add(server: &Server, replicas: i32) {
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } });
    let spec = json!({ "replicas": replicas, "selector": { "app": "web" }, "template": template });
    server.add(&object("v1", "ReplicationController", "web").set(&["spec"], spec));
}

fn scale(server: &Server, replicas: i32) {
    server.change("replicationcontrollers", KEY, |owner| owner["spec"]["replicas"] = replicas.into());
}

fn start(server: &Server) -> Running {
    Running::start::<ReplicationControllerOperator>(server, &[])
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
        let server = survives_kills::<ReplicationControllerOperator>(&[], &life).await;
        assert_eq!(server.keys("pods").len(), 2);
        assert_eq!(server.get("replicationcontrollers", KEY).unwrap()["status"]["readyReplicas"], 2);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        server.on("create", "pods").once().lose();
        server.hold_watches("pods");
        add(&server, 3);
        running.pass(Duration::from_secs(3)).await;
        assert_eq!(server.count("create pods"), 1, "nobody knows yet whether there is a pod");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!(server.keys("pods").len(), 3);
        assert_eq!(server.count("create pods"), 3);
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
        assert_eq!(server.get("replicationcontrollers", KEY).unwrap()["status"]["replicas"], 4);
    });
}

#[test]
fn a_status_that_meets_a_newer_version_is_written_all_the_same() {
    test(async {
        let server = Server::new();
        add(&server, 1);
        let held = server.on("patch", "replicationcontrollers/status").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.change("replicationcontrollers", KEY, |owner| owner["metadata"]["labels"]["new"] = "yes".into());
        held.release();
        running.at_rest().await;
        let owner = server.get("replicationcontrollers", KEY).unwrap();
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

#[test]
fn pods_are_followed_only_where_there_is_a_replication_controller() {
    test(async {
        let server = Server::new();
        server.add(&pod("other").namespace("elsewhere"));
        let remove = |server: &Server| server.delete("replicationcontrollers", KEY);
        let add = |server: &Server| add(server, 2);
        is_followed_only_while_needed::<ReplicationControllerOperator>(&server, "pods default/", add, remove).await;
        assert_eq!(server.count("create pods"), 2, "what was orphaned is adopted");
    });
}

#[test]
fn the_first_one_waits_for_its_pods_however_they_come() {
    let first = |server: &Server| {
        server.add(&pod("web-a").label("app", "web"));
        add(server, 2);
    };
    let then = |server: &Server| assert_eq!((server.keys("pods").len(), server.count("create pods")), (2, 1));
    test(the_first_one_waits::<ReplicationControllerOperator>(&[], "pods", first, then));
}

#[test]
fn a_slow_first_list_and_a_watch_that_breaks_make_no_pod_too_many() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        let slow = server.on("list", "pods").hold().once();
        add(&server, 2);
        slow.arrived().await;
        server.add(&pod("web-a").label("app", "web"));
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(server.writes(), [""; 0]);
        slow.release();
        running.at_rest().await;
        server.cut_watches("pods");
        scale(&server, 3);
        running.at_rest().await;
        server.expire_watches("pods");
        scale(&server, 4);
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods"), server.count("delete pods")), (4, 3, 0));
    });
}

#[test]
fn one_that_goes_and_comes_again_finds_its_pods() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        add(&server, 3);
        running.at_rest().await;
        let meanwhile = |server: &Server| {
            server.add(&pod("stray").label("app", "web"));
            server.delete("pods", "default/stray");
        };
        let then = |server: &Server, pause| assert_eq!(server.keys("pods").len(), 3, "{pause:?}");
        let web = ("replicationcontrollers", KEY);
        it_goes_and_comes_again((&server, &running), web, meanwhile, Duration::from_secs(5), then).await;
        assert_eq!(server.count("create pods"), 3, "no pod was made twice");
    });
}
