//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use cronjob_operator::controller::CronJobOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, object};

/// A CronJob `hello` of every minute.
fn add(server: &Server) {
    let spec = json!({
        "schedule": "* * * * *", "concurrencyPolicy": "Forbid", "suspend": false,
        "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
        "jobTemplate": { "spec": { "template": { "spec": { "containers": [] } } } },
    });
    server.add(&object("batch/v1", "CronJob", "hello").set(&["spec"], spec));
}

/// Plays the job-operator: every Job is complete.
fn complete(server: &Server) {
    let complete = json!({ "type": "Complete", "status": "True", "lastTransitionTime": NOW.to_string() });
    for key in server.keys("jobs") {
        server.change("jobs", &key, |job| {
            job["status"] = json!({ "conditions": [complete], "startTime": NOW.to_string(), "completionTime": NOW.to_string() });
        });
    }
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(add),
            Pass(Duration::from_secs(90)),
            Do(complete),
            Pass(Duration::from_secs(60)),
            Do(complete),
            Pass(Duration::from_secs(10)),
        ];
        let server = survives_kills::<CronJobOperator>(&[], &life).await;
        // The minutes since 1970 of 12:02; the one before is history.
        assert_eq!(server.keys("jobs"), ["default/hello-29454482"]);
        assert_eq!(server.count("create jobs"), 2);
        let active = server.get("cronjobs", "default/hello").unwrap()["status"]["active"].clone();
        assert!(active.as_array().is_none_or(Vec::is_empty), "{active}");
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_job() {
    test(async {
        let server = Server::new();
        add(&server);
        server.on("create", "jobs").once().lose();
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.pass(Duration::from_secs(90)).await;
        running.at_rest().await;
        assert_eq!(server.keys("jobs"), ["default/hello-29454481"]);
        assert_eq!(server.get("cronjobs", "default/hello").unwrap()["status"]["active"][0]["name"], "hello-29454481");
    });
}

#[test]
fn a_watch_that_stands_still_starts_no_job_that_is_forbidden() {
    test(async {
        let server = Server::new();
        add(&server);
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.at_rest().await;
        server.hold_watches("jobs");
        running.pass(Duration::from_secs(200)).await;
        assert_eq!(server.keys("jobs").len(), 1);
        server.release_watches("jobs");
        running.at_rest().await;
        assert_eq!(server.keys("jobs").len(), 1);
    });
}
