//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use jiff::Timestamp;
use job_operator::controller::JobOperator;
use serde_json::{Value, json};
use shared::api::explain::{KeyState, Stage, Standing};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{self, LARGE_BYTES, args_bytes, enlarged, object, uid};

const KEY: &str = "default/pi";

fn add(server: &Server, parallelism: i32, completions: i32) {
    let template =
        json!({ "metadata": { "labels": { "job": "pi" } }, "spec": { "restartPolicy": "Never", "containers": [] } });
    let spec = json!({
        "parallelism": parallelism, "completions": completions, "backoffLimit": 6,
        "selector": { "matchLabels": { "job": "pi" } }, "template": template,
    });
    server.add(&object("batch/v1", "Job", "pi").set(&["spec"], spec));
}

fn status(server: &Server) -> Value {
    server.get("jobs", KEY).unwrap_or_default()["status"].clone()
}

fn succeed(server: &Server) {
    server.end_pods("Succeeded");
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let second = Duration::from_secs(2);
        let life = [
            Do(|server| add(server, 2, 3)),
            Do(Server::run_pods),
            Pass(second),
            Do(succeed),
            Pass(second),
            Do(Server::run_pods),
            Pass(second),
            Do(succeed),
            Pass(second),
        ];
        let server = survives_kills::<JobOperator>(&[], &life).await;
        assert_eq!((server.keys("pods").len(), server.count("create pods")), (3, 3));
        assert_eq!(status(&server)["succeeded"], 3);
        assert_eq!(status(&server)["conditions"][1]["type"], "Complete");
    });
}

#[test]
fn a_failed_pod_is_counted_once_whenever_the_operator_is_killed() {
    test(async {
        let life = [
            Do(|server| add(server, 1, 1)),
            Do(Server::run_pods),
            Do(|server| server.end_pods("Failed")),
            Pass(Duration::from_secs(15)),
            Do(Server::run_pods),
            Do(succeed),
            Pass(Duration::from_secs(2)),
        ];
        let server = survives_kills::<JobOperator>(&[], &life).await;
        assert_eq!((&status(&server)["failed"], &status(&server)["succeeded"]), (&json!(1), &json!(1)));
    });
}

#[test]
fn a_large_template_is_read_for_new_pods() {
    test(async {
        let server = Server::new();
        add(&server, 2, 2);
        server.change("jobs", KEY, |job| job["spec"]["template"] = enlarged(job["spec"]["template"].take()));
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        let pods = server.list("pods");
        assert_eq!(pods.iter().map(|pod| args_bytes(&pod["spec"])).collect::<Vec<_>>(), [LARGE_BYTES; 2]);
        server.run_pods();
        succeed(&server);
        running.pass(Duration::from_secs(2)).await;
        assert_eq!(status(&server)["conditions"][1]["type"], "Complete");
        assert_eq!(server.count("get jobs"), 1);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        server.on("create", "pods").once().lose();
        server.hold_watches("pods");
        add(&server, 3, 3);
        running.pass(Duration::from_secs(4)).await;
        assert_eq!(server.count("create pods"), 1, "nobody knows yet whether there is a pod");
        server.release_watches("pods");
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((server.keys("pods").len(), server.count("create pods")), (3, 3));
    });
}

#[test]
fn a_watch_that_stands_still_makes_no_second_pod_and_counts_none_twice() {
    test(async {
        let server = Server::new();
        add(&server, 2, 4);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        server.run_pods();
        server.hold_watches("pods");
        succeed(&server);
        server.change("jobs", KEY, |job| job["metadata"]["annotations"]["touched"] = "yes".into());
        running.pass(Duration::from_secs(4)).await;
        assert_eq!(server.count("create pods"), 2);
        server.release_watches("pods");
        running.pass(Duration::from_secs(4)).await;
        assert_eq!((server.count("create pods"), &status(&server)["succeeded"]), (4, &json!(2)));
    });
}

#[test]
fn a_job_ends_only_once_every_counted_pod_was_let_go() {
    test(async {
        let server = Server::new();
        add(&server, 2, 2);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        server.run_pods();
        server.on("patch", "pods").once().answer(500, "InternalError", "failed calling webhook");
        succeed(&server);
        running.pass(Duration::from_millis(1100)).await;
        let half = status(&server);
        assert_eq!((&half["succeeded"], &half["uncountedTerminatedPods"]["succeeded"][1]), (&json!(1), &Value::Null));
        assert_eq!(half["conditions"][1], Value::Null, "only the end is announced");
        running.pass(Duration::from_secs(4)).await;
        let whole = status(&server);
        assert_eq!((&whole["succeeded"], &whole["conditions"][1]["type"]), (&json!(2), &json!("Complete")));
    });
}

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// A pod of `pi`'s that waits to be counted.
fn add_pod(server: &Server) {
    let owner = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "pi", "uid": uid("pi").to_string(), "controller": true });
    let pod = testing::pod("a").label("job", "pi").phase("Running");
    let pod = pod.set(&["metadata", "ownerReferences"], json!([owner]));
    server.add(&pod.set(&["metadata", "finalizers"], json!([FINALIZER])));
}

/// A Job for which pods are followed, and nothing is done.
fn add_idle(server: &Server) {
    let spec = json!({ "parallelism": 0, "selector": { "matchLabels": { "job": "idle" } }, "template": {} });
    server.add(&object("batch/v1", "Job", "idle").set(&["spec"], spec));
}

fn waits_to_be_counted(server: &Server) -> bool {
    server.get("pods", "default/a").unwrap_or_default()["metadata"]["finalizers"][0] == FINALIZER
}

#[test]
fn a_pod_that_is_seen_before_its_job_waits_to_be_counted() {
    test(async {
        let server = Server::new();
        add_idle(&server);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        server.hold_watches("jobs");
        add(&server, 1, 1);
        add_pod(&server);
        running.at_rest().await;
        assert_eq!((server.count("get jobs default/pi"), waits_to_be_counted(&server)), (1, true));
    });
}

#[test]
fn a_pod_whose_job_the_apiserver_has_not_either_waits_no_more() {
    test(async {
        let server = Server::new();
        add_idle(&server);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        server.hold_watches("jobs");
        add_pod(&server);
        running.at_rest().await;
        assert_eq!((server.count("get jobs default/pi"), waits_to_be_counted(&server)), (1, false));
    });
}

#[test]
fn an_unknown_path_does_not_show_that_the_job_of_a_pod_is_gone() {
    test(async {
        let server = Server::new();
        add_idle(&server);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        let unknown = server.on("get", "jobs").answer(404, "", "404 page not found");
        add_pod(&server);
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((unknown.count() > 1, waits_to_be_counted(&server)), (true, true));
    });
}

const PATH: &str = "/apis/batch/v1/namespaces/default/jobs/pi";

/// `nothing (1 of 1 active)`, `nothing to count`.
fn texts(stages: &[Stage]) -> Vec<&str> {
    stages.iter().map(|stage| stage.text.as_str()).collect()
}

#[test]
fn at_rest_it_says_why_and_what_it_has_done() {
    test(async {
        let server = Server::new();
        add_idle(&server);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        add(&server, 2, 2);
        running.at_rest().await;
        server.run_pods();
        running.pass(Duration::from_secs(3)).await;
        let requests = server.requests();

        let why = running.why(PATH);
        let [KeyState { queue, key, now, last, standing }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), key.as_str(), standing), ("job", KEY, &Standing::default()));
        assert_eq!(texts(now), ["nothing (2 of 2 active)", "nothing to count"]);
        let numbers =
            json!({ "active": 2, "wanted": 2, "terminating": 0, "succeeded": 0, "failed": 0, "completions": 2 });
        assert_eq!((&now[0].reason, &now[1].reason), (&json!({ "parallelism": numbers }), &json!("counted")));
        let created = last.last().unwrap();
        assert_eq!(texts(&created.stages), ["create 2", "write the status"]);
        let wrote: Vec<&str> = created.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["pods", "pods", "jobs.batch"]);
        assert_eq!(created.cause.as_ref().map(|cause| cause.resource.as_str()), Some("jobs.batch"));
        assert_eq!(running.why(PATH).keys, why.keys);
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}

#[test]
fn a_job_that_waits_after_failures_says_until_when() {
    test(async {
        let server = Server::new();
        add(&server, 1, 1);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        server.run_pods();
        server.end_pods("Failed");
        running.pass(Duration::from_secs(4)).await;
        let requests = server.requests();
        let why = running.why(PATH);
        let [KeyState { now, standing, .. }] = &why.keys[..] else { panic!("{why}") };
        let timer = standing.timer.as_ref().unwrap_or_else(|| panic!("{why}"));
        assert_eq!(timer.purpose, "the back-off of its pods");
        assert_eq!(now[0].reason["backoff"]["failures"], 1, "{why}");
        let next: Timestamp = now[0].reason["backoff"]["next"].as_str().unwrap().parse().unwrap();
        assert!(next > why.time && next <= timer.due, "{why}");
        assert_eq!(running.why(PATH).keys[0].now[0].reason, now[0].reason, "nothing was remembered by asking");
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}

#[test]
fn a_pod_says_why_it_keeps_its_finalizer() {
    test(async {
        let server = Server::new();
        add_idle(&server);
        let running = Running::start::<JobOperator>(&server, &[]);
        running.at_rest().await;
        add(&server, 1, 1);
        add_pod(&server);
        running.pass(Duration::from_secs(3)).await;
        let requests = server.requests();
        let why = running.why("/api/v1/namespaces/default/pods/a");
        let [KeyState { queue, now, .. }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), &now[0].reason), ("job_orphan_pod", &json!({ "running": { "job": "pi" } })));
        assert_eq!(running.why("/api/v1/namespaces/default/pods/none").keys[0].now, []);
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}
