//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![cfg(test)]

use std::time::Duration;

use cronjob_operator::controller::CronJobOperator;
use serde_json::json;
use shared::api::explain::KeyState;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{LARGE_BYTES, NOW, args_bytes, enlarged, object, uid};

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

/// A CronJob `hello` of every minute, and the longest argument that it can have.
fn add_large(server: &Server) {
    add(server);
    server.change("cronjobs", "default/hello", |cron_job| {
        let template = &mut cron_job["spec"]["jobTemplate"]["spec"]["template"];
        *template = enlarged(template.take());
    });
}

#[test]
fn a_large_job_template_is_read_when_a_run_is_due() {
    test(async {
        let server = Server::new();
        add_large(&server);
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.at_rest().await;
        assert_eq!(server.count("get cronjobs"), 0);
        running.pass(Duration::from_secs(90)).await;
        let job = server.get("jobs", "default/hello-29454481").unwrap();
        assert_eq!(args_bytes(&job["spec"]["template"]["spec"]), LARGE_BYTES);
        assert_eq!(server.count("get cronjobs"), 1);
        server.change("cronjobs", "default/hello", |cron_job| cron_job["spec"]["suspend"] = true.into());
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(server.count("get cronjobs"), 1, "no run is due");
    });
}

#[test]
fn a_large_job_template_that_was_edited_meanwhile_starts_no_job_of_either() {
    test(async {
        let server = Server::new();
        add_large(&server);
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.at_rest().await;
        server.hold_watches("cronjobs");
        server.change("cronjobs", "default/hello", |cron_job| {
            cron_job["spec"]["jobTemplate"]["metadata"] = json!({ "labels": { "edited": "yes" } });
        });
        running.pass(Duration::from_secs(65)).await;
        assert_eq!(server.writes(), [""; 0]);
        server.release_watches("cronjobs");
        running.at_rest().await;
        let job = server.get("jobs", "default/hello-29454481").unwrap();
        assert_eq!(job["metadata"]["labels"]["edited"], "yes");
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

#[test]
fn an_unknown_path_does_not_show_that_an_active_job_is_gone() {
    test(async {
        let server = Server::new();
        add(&server);
        let active = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "hello-1", "uid": uid("hello-1"),
        }]);
        server.change("cronjobs", "default/hello", |cron_job| cron_job["status"]["active"] = active.clone());
        let unknown = server.on("get", "jobs").answer(404, "", "404 page not found");
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.pass(Duration::from_mins(3)).await;
        assert_eq!((unknown.count() > 1, server.writes()), (true, vec![]));
    });
}

/// A Job of nobody in a namespace without a CronJob.
fn add_elsewhere(server: &Server) {
    server.add(&object("batch/v1", "Job", "other").namespace("elsewhere").set(&["spec"], json!({})));
}

#[test]
fn jobs_are_followed_only_where_there_is_a_cron_job() {
    test(async {
        let server = Server::new();
        add_elsewhere(&server);
        let remove = |server: &Server| server.delete("cronjobs", "default/hello");
        is_followed_only_while_needed::<CronJobOperator>(&server, "jobs default/", add, remove).await;
    });
}

#[test]
fn the_first_cron_job_waits_for_its_jobs_however_they_come() {
    let then = |server: &Server| {
        assert_eq!(server.count("create jobs"), 1, "what was due meanwhile is started, and forbids another");
    };
    test(the_first_one_waits::<CronJobOperator>(&[], "jobs", add, then));
}

#[test]
fn a_slow_first_list_and_a_watch_that_breaks_start_no_job_that_is_forbidden() {
    test(async {
        let server = Server::new();
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.at_rest().await;
        let slow = server.on("list", "jobs").hold();
        add(&server);
        slow.arrived().await;
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(server.writes(), [""; 0]);
        slow.release();
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(server.keys("jobs").len(), 1, "what was due meanwhile is started");
        for disturb in [Server::cut_watches, Server::expire_watches] {
            disturb(&server, "jobs");
            running.pass(Duration::from_secs(90)).await;
        }
        assert_eq!((server.keys("jobs").len(), server.count("create jobs")), (1, 1));
        complete(&server);
        running.pass(Duration::from_secs(70)).await;
        assert_eq!(server.count("create jobs"), 2);
    });
}

#[test]
fn one_that_goes_and_comes_again_finds_its_jobs() {
    test(async {
        let server = Server::new();
        let running = Running::start::<CronJobOperator>(&server, &[]);
        add(&server);
        running.pass(Duration::from_secs(70)).await;
        let then = |server: &Server, pause| {
            assert_eq!(server.keys("jobs").len(), 1, "{pause:?}: the one that runs forbids another");
        };
        let hello = ("cronjobs", "default/hello");
        it_goes_and_comes_again((&server, &running), hello, |_| (), Duration::from_secs(130), then).await;
        assert_eq!(server.count("create jobs"), 1);
    });
}

const PATH: &str = "/apis/batch/v1/namespaces/default/cronjobs/hello";

#[test]
fn at_rest_it_says_when_its_next_start_is_and_what_it_has_started() {
    test(async {
        let server = Server::new();
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.at_rest().await;
        add(&server);
        running.pass(Duration::from_secs(70)).await;
        let requests = server.requests();

        let why = running.why(PATH);
        let [KeyState { queue, key, now, last, standing }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), key.as_str()), ("cronjob", "default/hello"));
        let next = json!({ "notDue": { "next": "2026-01-01T12:02:00Z" } });
        assert_eq!((now.len(), &now[0].reason), (1, &next), "{why}");
        assert!(now[0].text.starts_with("nothing (not due); again in "), "{why}");
        let timer = standing.timer.as_ref().unwrap_or_else(|| panic!("{why}"));
        assert_eq!((timer.purpose.as_str(), timer.due > why.time), ("its next start", true));
        let started = last.iter().find(|decision| decision.stages[0].text.starts_with("start")).unwrap();
        let due = json!({ "due": { "due": "2026-01-01T12:01:00Z", "missed": "none", "replaced": [] } });
        assert_eq!(started.stages[0].reason, due);
        let wrote: Vec<&str> = started.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["jobs.batch", "cronjobs.batch"]);
        assert_eq!(running.why(PATH).keys, why.keys);
        assert_eq!(running.why("/apis/batch/v1/namespaces/default/jobs/hello").keys, []);
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}

#[test]
fn a_start_that_is_forbidden_names_the_job_that_runs() {
    test(async {
        let server = Server::new();
        let running = Running::start::<CronJobOperator>(&server, &[]);
        running.at_rest().await;
        add(&server);
        running.pass(Duration::from_secs(130)).await;
        let requests = server.requests();
        let why = running.why(PATH);
        let forbidden = json!({ "forbidden": { "due": "2026-01-01T12:02:00Z", "active": ["hello-29454481"] } });
        assert_eq!(why.keys[0].now[0].reason, forbidden, "{why}");
        assert_eq!(server.requests(), requests, "asking asks nobody, and tells nobody");
    });
}
