//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use serde_json::json;
use shared::api::explain::{KeyState, Standing};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, object};
use ttl_after_finished_operator::controller::TtlAfterFinishedOperator;

/// A Job that ended just now.
fn add(server: &Server, name: &str, ttl_seconds: i32) {
    let complete = json!({ "type": "Complete", "status": "True", "lastTransitionTime": NOW.to_string() });
    let job = object("batch/v1", "Job", name).set(&["spec", "ttlSecondsAfterFinished"], ttl_seconds);
    server.add(&job.set(&["status", "conditions"], json!([complete])));
}

fn finalizers(server: &Server) -> serde_json::Value {
    server.get("jobs", "default/a").map_or(json!("gone"), |job| job["metadata"]["finalizers"].clone())
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add(server, "a", 0);
                add(server, "b", 60);
                add(server, "c", 600);
            }),
            Pass(Duration::from_secs(61)),
        ];
        let server = survives_kills::<TtlAfterFinishedOperator>(&[], &life).await;
        assert_eq!(server.writes(), ["delete jobs default/a", "delete jobs default/b"]);
    });
}

#[test]
fn a_deletion_whose_answer_is_lost_is_not_made_twice() {
    test(async {
        let server = Server::new();
        server.on("delete", "jobs").once().lose();
        add(&server, "a", 0);
        Running::start::<TtlAfterFinishedOperator>(&server, &[]).at_rest().await;
        assert_eq!(finalizers(&server), json!(["foregroundDeletion"]));
        assert_eq!(server.count("delete jobs"), 1);
    });
}

#[test]
fn a_job_that_is_given_more_time_at_the_last_moment_stays() {
    test(async {
        let server = Server::new();
        add(&server, "a", 0);
        let held = server.on("delete", "jobs").once().hold();
        let running = Running::start::<TtlAfterFinishedOperator>(&server, &[]);
        held.arrived().await;
        server.change("jobs", "default/a", |job| job["spec"]["ttlSecondsAfterFinished"] = 60.into());
        held.release();
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!(null));
        running.pass(Duration::from_secs(61)).await;
        assert_eq!(finalizers(&server), json!(["foregroundDeletion"]));
    });
}

#[test]
fn why_says_when_a_job_goes() {
    test(async {
        let server = Server::new();
        add(&server, "a", 60);
        let running = Running::start::<TtlAfterFinishedOperator>(&server, &[]);
        running.at_rest().await;
        let why = running.why("/apis/batch/v1/namespaces/default/jobs/a");
        let [KeyState { now, standing: Standing { timer: Some(timer), .. }, .. }] = &why.keys[..] else {
            panic!("{why}")
        };
        let expires = (NOW + Duration::from_secs(60)).to_string();
        assert_eq!(now[0].reason, json!({ "notExpired": { "expires": expires } }));
        assert!(timer.due >= NOW + Duration::from_secs(60) && timer.purpose == "the end of its time to live", "{why}");
    });
}
