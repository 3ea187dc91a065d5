//! The operator as it is, against an apiserver in the test's process: its rounds, its syncs, its writes.

use std::time::Duration;

use podcertificaterequest_cleaner_operator::controller::PodCertificateRequestCleanerOperator;
use podcertificaterequest_cleaner_operator::objects::POD_CERTIFICATE_REQUESTS;
use serde_json::json;
use shared::api::explain::{KeyState, Standing};
use shared::api::resource::Resource;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, ago, object};

const REQUESTS: &str = "podcertificaterequests";
const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);

/// A request that was made so many minutes before the test.
fn request(name: &str, minutes: i64) -> ObjectBuilder {
    object("certificates.k8s.io/v1beta1", "PodCertificateRequest", name).created(ago(60 * minutes))
}

fn start(server: &Server) -> Running {
    Running::start::<PodCertificateRequestCleanerOperator>(server, &[])
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&request("a", 0));
                server.add(&request("b", 10));
                server.add(&request("b", 14).namespace("other"));
            }),
            Pass(16 * MINUTE),
            Do(|server| server.add(&request("late", 0))),
            Pass(MINUTE),
            Do(|server| server.add(&request("c", -17))),
            Pass(4 * MINUTE),
        ];
        let server = survives_kills::<PodCertificateRequestCleanerOperator>(&[], &life).await;
        assert_eq!(server.keys(REQUESTS), ["default/c"]);
        let mut writes = server.writes();
        writes.sort();
        let names = ["default/a", "default/b", "default/late", "other/b"];
        assert_eq!(writes, names.map(|name| format!("delete podcertificaterequests {name}")));
    });
}

#[test]
fn a_request_goes_at_its_time_and_not_with_the_next_round() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        server.add(&request("a", 2));
        running.pass(Duration::from_secs(13 * 60 - 1)).await;
        assert_eq!(server.writes(), none());
        running.pass(2 * SECOND).await;
        assert_eq!(server.keys(REQUESTS), none());
        // At the start, and after each five minutes.
        assert_eq!((server.count("list podcertificaterequests"), server.count("get podcertificaterequests")), (3, 1));
        assert_eq!(server.count("watch podcertificaterequests"), 0);
    });
}

/// Upstream's controller of 1.37 reads the first of these, and that of 1.36 the second.
#[test]
fn a_request_goes_in_each_version_in_which_apiservers_serve_it() {
    for version in ["v1", "v1beta1"] {
        test(async {
            let server = Server::new();
            server.withdraw(REQUESTS);
            server.serve(Resource { version: version.into(), ..POD_CERTIFICATE_REQUESTS });
            let api_version = format!("certificates.k8s.io/{version}");
            server.add(&object(&api_version, "PodCertificateRequest", "a").created(ago(60 * 60)));
            start(&server).at_rest().await;
            assert_eq!(server.keys(REQUESTS), none(), "{version}");
        });
    }
}

#[test]
fn where_none_are_served_it_asks_again_in_each_round() {
    test(async {
        let server = Server::new();
        let missing = "the server could not find the requested resource";
        let not_served = server.on("list", REQUESTS).answer(404, "NotFound", missing);
        server.add(&request("a", 60));
        let running = start(&server);
        running.at_rest().await;
        running.pass(11 * MINUTE).await;
        assert_eq!((not_served.count(), server.writes()), (3, none()));
        // Somebody has turned them on.
        not_served.times(0);
        running.pass(5 * MINUTE).await;
        assert_eq!(server.keys(REQUESTS), none());
    });
}

#[test]
fn a_list_that_fails_is_tried_again_before_the_next_round() {
    test(async {
        let server = Server::new();
        server.on("list", REQUESTS).times(3).answer(500, "InternalError", "etcd is down");
        server.add(&request("a", 60));
        start(&server).at_rest().await;
        assert_eq!((server.count("list podcertificaterequests"), server.keys(REQUESTS)), (4, none()));
    });
}

#[test]
fn a_deletion_that_fails_is_tried_again_and_keeps_no_other_waiting() {
    test(async {
        let server = Server::new();
        server.on("delete", REQUESTS).times(3).answer(500, "InternalError", "failed calling webhook");
        for name in ["a", "b"] {
            server.add(&request(name, 60));
        }
        start(&server).at_rest().await;
        assert_eq!((server.count("delete podcertificaterequests"), server.keys(REQUESTS)), (5, none()));
    });
}

#[test]
fn a_deletion_whose_answer_is_lost_is_not_made_twice() {
    test(async {
        let server = Server::new();
        server.on("delete", REQUESTS).once().lose();
        server.add(&request("a", 60));
        start(&server).at_rest().await;
        assert_eq!((server.count("delete podcertificaterequests"), server.keys(REQUESTS)), (1, none()));
    });
}

#[test]
fn a_request_of_the_same_name_is_another_request() {
    test(async {
        let server = Server::new();
        server.add(&request("a", 60));
        let held = server.on("delete", REQUESTS).once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete(REQUESTS, "default/a");
        server.add(&request("a", 0).uid_of("another"));
        held.release();
        running.at_rest().await;
        assert_eq!(server.keys(REQUESTS), ["default/a"]);
        running.pass(16 * MINUTE).await;
        assert_eq!(server.keys(REQUESTS), none());
    });
}

#[test]
fn a_request_that_a_finalizer_keeps_is_deleted_once_and_one_that_went_by_itself_never() {
    test(async {
        let server = Server::new();
        server.add(&request("held", 60).set(&["metadata", "finalizers"], json!(["e2e.example/hold"])));
        server.add(&request("gone", 5));
        let running = start(&server);
        running.at_rest().await;
        server.delete(REQUESTS, "default/gone");
        running.pass(30 * MINUTE).await;
        assert_eq!(server.writes(), ["delete podcertificaterequests default/held"]);
        assert_eq!(server.count("get podcertificaterequests default/gone"), 1);
    });
}

#[test]
fn why_says_when_a_request_goes() {
    test(async {
        let server = Server::new();
        server.add(&request("a", 1));
        let running = start(&server);
        running.at_rest().await;
        let requests = server.requests();
        let why = running.why("/apis/certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests/a");
        assert_eq!(server.requests(), requests, "an answer changes nothing");
        let [KeyState { now, standing: Standing { timer: Some(timer), .. }, .. }] = &why.keys[..] else {
            panic!("{why}")
        };
        assert_eq!((&*now[0].text, &now[0].reason), ("read the request (not cached)", &json!("notFollowed")));
        assert_eq!(timer.purpose, "the end of its time");
        let end = NOW + 14 * MINUTE;
        assert!(timer.due >= end && timer.due < end + SECOND, "{why}");
    });
}
