//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

use std::time::Duration;

use certificatesigningrequest_cleaner_operator::controller::CertificateSigningRequestCleanerOperator;
use serde_json::json;
use shared::api::explain::{KeyState, Standing};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object};

const REQUESTS: &str = "certificatesigningrequests";
const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);

fn request(name: &str) -> ObjectBuilder {
    object("certificates.k8s.io/v1", "CertificateSigningRequest", name).namespace("")
}

/// Somebody has decided on a request so long ago.
fn decide(server: &Server, name: &str, type_: &str, age: Duration) {
    let time = (server.clock().now() - age).to_string();
    let condition = json!({ "type": type_, "status": "True", "lastUpdateTime": time });
    server.change(REQUESTS, name, |request| request["status"]["conditions"] = json!([condition]));
}

/// Its signer has signed it.
fn issue(server: &Server, name: &str) {
    server.change(REQUESTS, name, |request| request["status"]["certificate"] = "c2lnbmVk".into());
}

fn start(server: &Server) -> Running {
    Running::start::<CertificateSigningRequestCleanerOperator>(server, &[])
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&request("pending").created(NOW - 23 * HOUR));
                ["denied", "issued", "unissued"].map(request).iter().for_each(|new| server.add(new));
            }),
            Do(|server| {
                decide(server, "denied", "Denied", Duration::ZERO);
                decide(server, "issued", "Approved", Duration::ZERO);
                decide(server, "unissued", "Approved", 23 * HOUR);
            }),
            Do(|server| issue(server, "issued")),
            Pass(HOUR + MINUTE),
            Do(|server| server.add(&request("younger").created(NOW))),
            Pass(MINUTE),
        ];
        let server = survives_kills::<CertificateSigningRequestCleanerOperator>(&[], &life).await;
        assert_eq!(server.keys(REQUESTS), ["younger"]);
        let mut writes = server.writes();
        writes.sort();
        let expected = ["denied", "issued", "pending", "unissued"];
        assert_eq!(writes, expected.map(|name| format!("delete certificatesigningrequests {name}")));
    });
}

#[test]
fn a_decision_at_the_last_moment_gives_a_request_its_time() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let held = server.on("delete", REQUESTS).once().hold();
        let running = start(&server);
        running.pass(24 * HOUR + SECOND).await;
        held.arrived().await;
        decide(&server, "a", "Denied", Duration::ZERO);
        held.release();
        running.at_rest().await;
        assert_eq!((server.keys(REQUESTS), held.count()), (vec!["a".to_owned()], 1));
        running.pass(HOUR + MINUTE).await;
        assert!(server.keys(REQUESTS).is_empty());
    });
}

#[test]
fn a_request_of_the_same_name_is_another_request() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let held = server.on("delete", REQUESTS).once().hold();
        let running = start(&server);
        running.pass(24 * HOUR + SECOND).await;
        held.arrived().await;
        server.delete(REQUESTS, "a");
        server.add(&request("a").uid_of("another").created(server.clock().now()));
        held.release();
        running.at_rest().await;
        assert_eq!(server.keys(REQUESTS), ["a"]);
    });
}

#[test]
fn a_deletion_that_fails_is_tried_again_and_keeps_no_other_waiting() {
    test(async {
        let server = Server::new();
        server.on("delete", REQUESTS).times(3).answer(500, "InternalError", "failed calling webhook");
        for name in ["a", "b"] {
            server.add(&request(name));
        }
        let running = start(&server);
        running.pass(24 * HOUR + MINUTE).await;
        assert!(server.keys(REQUESTS).is_empty());
        assert_eq!(server.count("delete certificatesigningrequests"), 5);
    });
}

#[test]
fn a_deletion_whose_answer_is_lost_is_not_made_twice() {
    test(async {
        let server = Server::new();
        server.on("delete", REQUESTS).once().lose();
        server.add(&request("a"));
        let running = start(&server);
        running.pass(24 * HOUR + MINUTE).await;
        assert_eq!((server.keys(REQUESTS).len(), server.count("delete certificatesigningrequests")), (0, 1));
    });
}

#[test]
fn a_request_that_a_finalizer_keeps_is_deleted_once() {
    test(async {
        let server = Server::new();
        server.add(&request("a").set(&["metadata", "finalizers"], json!(["e2e.example/hold"])));
        let running = start(&server);
        running.pass(30 * HOUR).await;
        assert_eq!((server.keys(REQUESTS).len(), server.count("delete certificatesigningrequests")), (1, 1));
    });
}

#[test]
fn requests_whose_time_was_over_before_the_start_go_at_once_and_others_are_not_read_again() {
    test(async {
        let server = Server::new();
        server.add(&request("old").created(NOW - 25 * HOUR));
        server.add(&request("young"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(server.keys(REQUESTS), ["young"]);
        let requests = server.requests();
        running.pass(MINUTE).await;
        assert_eq!(server.requests(), requests);
    });
}

#[test]
fn why_says_which_state_of_a_request_ends_and_when() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let running = start(&server);
        decide(&server, "a", "Denied", Duration::ZERO);
        running.at_rest().await;
        let why = running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/a");
        let [KeyState { now, standing: Standing { timer: Some(timer), .. }, .. }] = &why.keys[..] else {
            panic!("{why}")
        };
        let end = (NOW + HOUR).to_string();
        assert_eq!(now[0].reason, json!({ "notOver": { "at": end, "state": "denied" } }));
        assert!(timer.due >= NOW + HOUR && timer.purpose == "the end of its time", "{why}");
        assert!(running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/gone").keys[0].now.is_empty());
    });
}
