//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::LazyLock;
use std::time::Duration;

use certificatesigningrequest_approving_operator::controller::CertificateSigningRequestApprovingOperator;
use certificatesigningrequest_approving_operator::objects::KUBELET_CLIENT_SIGNER;
use data_encoding::BASE64;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const REQUESTS: &str = "certificatesigningrequests";
const NODE: &str = "system:node:a";
const BOOTSTRAP: &str = "system:bootstrap:abcdef";
const SELF: &str = "create certificatesigningrequests/selfnodeclient";
const ANY: &str = "create certificatesigningrequests/nodeclient";

/// The request of the node's kubelet. There is one for all tests, so that two lives of a cluster can be compared.
static CONTENT: LazyLock<String> = LazyLock::new(|| {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, NODE);
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    BASE64.encode(pem.as_bytes())
});

/// A request that this user has made.
fn request(name: &str, username: &str) -> ObjectBuilder {
    let spec = json!({
        "request": *CONTENT, "signerName": KUBELET_CLIENT_SIGNER, "username": username,
        "usages": ["digital signature", "client auth"],
    });
    object("certificates.k8s.io/v1", "CertificateSigningRequest", name).namespace("").set(&["spec"], spec)
}

fn start(server: &Server) -> Running {
    Running::start::<CertificateSigningRequestApprovingOperator>(server, &[])
}

fn conditions(server: &Server, name: &str) -> Value {
    server.get(REQUESTS, name).map_or(Value::Null, |request| request["status"]["conditions"].clone())
}

fn message(server: &Server, name: &str) -> Value {
    conditions(server, name)[0]["message"].clone()
}

fn reviews(server: &Server) -> usize {
    server.count("create subjectaccessreviews")
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| server.allow(NODE, SELF)),
            Do(|server| server.add(&request("renewal", NODE))),
            Do(|server| {
                server.allow(BOOTSTRAP, ANY);
                server.add(&request("join", BOOTSTRAP));
                let other = request("other", NODE).set(&["spec", "signerName"], "kubernetes.io/kubelet-serving");
                server.add(&other);
            }),
        ];
        let server = survives_kills::<CertificateSigningRequestApprovingOperator>(&[], &life).await;
        let names = ["renewal", "join"];
        assert_eq!(server.writes(), names.map(|name| format!("patch certificatesigningrequests/approval {name}")));
        let own = "Auto approving self kubelet client certificate after SubjectAccessReview.";
        let any = "Auto approving kubelet client certificate after SubjectAccessReview.";
        assert_eq!([message(&server, "renewal"), message(&server, "join")], [own, any]);
        assert_eq!(conditions(&server, "other"), Value::Null);
    });
}

#[test]
fn a_node_without_the_right_to_its_own_certificate_may_have_the_right_to_any() {
    test(async {
        let server = Server::new();
        server.allow(NODE, ANY);
        server.add(&request("a", NODE));
        start(&server).at_rest().await;
        assert_eq!(message(&server, "a"), "Auto approving kubelet client certificate after SubjectAccessReview.");
        assert_eq!(reviews(&server), 2);
    });
}

#[test]
fn a_requester_without_a_right_is_asked_about_ever_more_seldom_until_it_has_one() {
    test(async {
        let server = Server::new();
        server.add(&request("a", BOOTSTRAP));
        let running = start(&server);
        running.pass(Duration::from_mins(10)).await;
        // After 200 ms, and then after twice as long each time.
        assert_eq!((reviews(&server), conditions(&server, "a")), (12, Value::Null));
        assert_eq!(server.writes(), Vec::<String>::new());
        server.allow(BOOTSTRAP, ANY);
        running.pass(Duration::from_secs(1000)).await;
        assert_eq!(conditions(&server, "a")[0]["type"], "Approved");
    });
}

#[test]
fn a_refused_requester_keeps_no_other_waiting() {
    test(async {
        let server = Server::new();
        server.allow(NODE, SELF);
        for n in 0..20 {
            server.add(&request(&format!("refused-{n}"), BOOTSTRAP));
        }
        server.add(&request("z", NODE));
        let running = start(&server);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(server.writes(), ["patch certificatesigningrequests/approval z"]);
    });
}

#[test]
fn one_review_is_for_all_requests_of_a_requester_that_are_there() {
    test(async {
        let server = Server::new();
        server.allow(BOOTSTRAP, ANY);
        server.allow("system:bootstrap:fedcba", ANY);
        for n in 0..50 {
            server.add(&request(&format!("join-{n}"), BOOTSTRAP));
        }
        server.add(&request("of-another", "system:bootstrap:fedcba"));
        let with_groups = request("in-a-group", BOOTSTRAP).set(&["spec", "groups"], json!(["system:bootstrappers"]));
        server.add(&with_groups);
        start(&server).at_rest().await;
        assert_eq!((reviews(&server), server.writes().len()), (3, 52));
    });
}

/// A right that was taken is not there for a request that is made afterwards.
#[test]
fn a_request_that_comes_later_is_reviewed_anew() {
    test(async {
        let server = Server::new();
        server.allow(BOOTSTRAP, ANY);
        let running = start(&server);
        let held = server.on("patch", "certificatesigningrequests/approval").once().hold();
        server.add(&request("a", BOOTSTRAP));
        held.arrived().await;
        server.add(&request("b", BOOTSTRAP));
        running.pass(Duration::from_millis(20)).await;
        assert_eq!((reviews(&server), conditions(&server, "b")[0]["type"].as_str()), (2, Some("Approved")));
        held.release();
        running.at_rest().await;
    });
}

#[test]
fn requests_for_other_signers_and_those_that_cannot_be_read_lead_to_no_request() {
    test(async {
        let server = Server::new();
        server.allow(NODE, SELF);
        server.add(&request("other", NODE).set(&["spec", "signerName"], "kubernetes.io/kubelet-serving"));
        server.add(&request("odd", NODE).set(&["spec", "request"], "b2Rk"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!((reviews(&server), server.writes().len()), (0, 0));
    });
}

#[test]
fn a_decision_that_somebody_makes_meanwhile_stands() {
    test(async {
        let server = Server::new();
        server.allow(NODE, SELF);
        server.add(&request("a", NODE));
        let held = server.on("patch", "certificatesigningrequests/approval").once().hold();
        let running = start(&server);
        held.arrived().await;
        let denial = json!([{ "type": "Denied", "status": "True", "reason": "Stranger" }]);
        server.change(REQUESTS, "a", |request| request["status"]["conditions"] = denial.clone());
        held.release();
        running.at_rest().await;
        assert_eq!(conditions(&server, "a"), denial);
        assert_eq!(server.count("patch certificatesigningrequests/approval"), 1);
    });
}

#[test]
fn a_request_that_is_withdrawn_meanwhile_is_done_with() {
    test(async {
        let server = Server::new();
        server.allow(NODE, SELF);
        server.add(&request("a", NODE));
        let held = server.on("patch", "certificatesigningrequests/approval").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete(REQUESTS, "a");
        held.release();
        running.at_rest().await;
        assert_eq!(server.count("patch certificatesigningrequests/approval"), 1);
    });
}

#[test]
fn an_approval_whose_answer_is_lost_is_not_made_twice() {
    test(async {
        let server = Server::new();
        server.on("patch", "certificatesigningrequests/approval").once().lose();
        server.allow(NODE, SELF);
        server.add(&request("a", NODE));
        start(&server).at_rest().await;
        assert_eq!(conditions(&server, "a").as_array().map(Vec::len), Some(1));
        assert_eq!(server.count("patch certificatesigningrequests/approval"), 1);
    });
}

#[test]
fn what_fails_is_tried_again() {
    test(async {
        let server = Server::new();
        server.on("create", "subjectaccessreviews").times(2).answer(500, "InternalError", "the webhook is down");
        server.on("patch", "certificatesigningrequests/approval").times(2).answer(503, "ServiceUnavailable", "no");
        server.allow(NODE, SELF);
        server.add(&request("a", NODE));
        start(&server).at_rest().await;
        assert_eq!(conditions(&server, "a")[0]["reason"], "AutoApproved");
        assert_eq!((reviews(&server), server.count("patch certificatesigningrequests/approval")), (5, 3));
    });
}

#[test]
fn a_start_among_requests_that_are_decided_asks_nothing() {
    test(async {
        let server = Server::new();
        for (name, type_) in [("approved", "Approved"), ("denied", "Denied")] {
            server
                .add(&request(name, NODE).set(&["status", "conditions"], json!([{ "type": type_, "status": "True" }])));
        }
        start(&server).at_rest().await;
        assert_eq!((reviews(&server), server.writes().len()), (0, 0));
    });
}

#[test]
fn why_says_for_which_right_a_request_waits() {
    test(async {
        let server = Server::new();
        server.add(&request("a", NODE));
        let running = start(&server);
        running.pass(Duration::from_secs(1)).await;
        let requests = server.requests();
        let why = running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/a");
        assert_eq!(server.requests(), requests, "an answer changes nothing");
        let [key] = &why.keys[..] else { panic!("{why}") };
        let rights = json!(["selfnodeclient", "nodeclient"]);
        assert_eq!(key.now[0].reason, json!({ "hasOneOf": { "permissions": rights } }));
        assert_eq!(key.last[0].stages[1].reason, json!({ "notAllowed": { "tried": rights } }), "{why}");
        assert!(key.standing.next_try.is_some(), "{why}");

        server.allow(NODE, SELF);
        running.pass(Duration::from_mins(1)).await;
        let why = running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/a");
        assert_eq!(why.keys[0].now[0].text, "nothing (already approved)");
    });
}
