//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use ephemeral_volume_operator::controller::EphemeralVolumeOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod};

const CLAIMS: &str = "persistentvolumeclaims";
const CREATE: &str = "create persistentvolumeclaims default/web-data";
const DATA: &str = "default/web-data";
const PATH: &str = "/api/v1/namespaces/default/pods/web";
const WEB: &str = "default/web";

fn ephemeral(name: &str) -> Value {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    json!({ "name": name, "ephemeral": { "volumeClaimTemplate": { "spec": spec } } })
}

/// A pod that has not started, with these ephemeral volumes.
fn user(name: &str, volumes: &[&str]) -> ObjectBuilder {
    let volumes: Vec<Value> = volumes.iter().map(|name| ephemeral(name)).collect();
    pod(name).phase("Pending").node("").set(&["spec", "volumes"], json!(volumes))
}

fn claim(name: &str) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", name)
}

async fn start(server: &Server) -> Running {
    start_at_rest::<EphemeralVolumeOperator>(server, &[]).await
}

/// Starts the operator where a sync fails again and again.
async fn start_failing(server: &Server) -> Running {
    let running = Running::start::<EphemeralVolumeOperator>(server, &[]);
    running.pass(Duration::from_secs(5)).await;
    running
}

fn owner(server: &Server, claim: &str) -> Value {
    server.get(CLAIMS, claim).unwrap()["metadata"]["ownerReferences"][0]["uid"].clone()
}

fn uid(server: &Server, pod: &str) -> Value {
    server.get("pods", pod).unwrap()["metadata"]["uid"].clone()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| ["web", "other"].iter().for_each(|name| server.add(&user(name, &["data", "logs"])))),
            Do(|server| server.delete(CLAIMS, DATA)),
            Do(|server| server.change("pods", WEB, |pod| pod["status"]["phase"] = json!("Running"))),
            Do(|server| server.delete(CLAIMS, "default/other-logs")),
        ];
        let server = survives_kills::<EphemeralVolumeOperator>(&[], &life).await;
        let expected = ["other-data", "other-logs", "web-data", "web-logs"];
        assert_eq!(server.keys(CLAIMS), expected.map(|name| format!("default/{name}")));
        for key in server.keys(CLAIMS) {
            let pod = if key.starts_with("default/web") { WEB } else { "default/other" };
            assert_eq!(owner(&server, &key), uid(&server, pod));
        }
    });
}

#[test]
fn a_pod_that_has_a_node_from_the_start_gets_its_claims_too() {
    test(async {
        let server = Server::new();
        server.add(&user("web", &["data"]).node("node-0"));
        start(&server).await;
        assert_eq!(server.keys(CLAIMS), [DATA]);
    });
}

#[test]
fn only_pods_that_have_not_started_are_followed_and_none_is_read_at_rest() {
    test(async {
        let server = Server::new();
        server.add(&user("web", &["data"]).phase("Running"));
        server.add(&pod("plain").phase("Pending"));
        start(&server).await;
        assert_eq!(server.count("get pods"), 0);
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}

#[test]
fn another_owners_claim_is_never_used_and_is_reported() {
    test(async {
        let server = Server::new();
        server.add(&claim("web-data"));
        let before = server.get(CLAIMS, DATA);
        server.add(&user("web", &["data"]));
        let running = start_failing(&server).await;
        let message =
            "ephemeral volume data: PVC default/web-data was not created for pod default/web (pod is not owner)";
        let events = server.events();
        assert!(events.iter().all(|event| event.contains("FailedBinding") && event.contains(message)), "{events:?}");
        assert_eq!((events.is_empty(), server.get(CLAIMS, DATA)), (false, before));
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        assert_eq!(owner(&server, DATA), uid(&server, WEB));
    });
}

#[test]
fn a_claim_that_somebody_else_creates_first_is_read_live_and_refused() {
    test(async {
        let server = Server::new();
        server.add(&user("web", &["data"]));
        let held = server.on("create", CLAIMS).once().hold();
        let running = Running::start::<EphemeralVolumeOperator>(&server, &[]);
        held.arrived().await;
        server.hold_watches(CLAIMS);
        server.add(&claim("web-data"));
        held.release();
        running.pass(Duration::from_secs(1)).await;
        assert!(server.count("get persistentvolumeclaims default/web-data") > 0);
        assert!(server.events().iter().any(|event| event.contains("(pod is not owner)")), "{:?}", server.events());
        assert_eq!(server.get(CLAIMS, DATA).unwrap()["metadata"]["ownerReferences"], Value::Null);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_is_found_by_its_owner() {
    test(async {
        let server = Server::new();
        server.add(&user("web", &["data"]));
        let held = server.on("create", CLAIMS).once().hold();
        let running = Running::start::<EphemeralVolumeOperator>(&server, &[]);
        held.arrived().await;
        server.hold_watches(CLAIMS);
        let owner =
            json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid(&server, WEB), "controller": true }]);
        server.add(&claim("web-data").set(&["metadata", "ownerReferences"], owner));
        held.release();
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(server.count("get persistentvolumeclaims default/web-data"), 1);
        assert_eq!((server.count(CREATE), server.events()), (1, Vec::new()));
    });
}

/// Upstream: `TestSyncHandler`, "create-conflict".
#[test]
fn a_creation_that_fails_is_reported_and_tried_again() {
    test(async {
        let server = Server::new();
        server.add(&user("web", &["data"]));
        server.on("create", CLAIMS).times(2).answer(409, "Conflict", "fake conflict");
        start(&server).await;
        assert_eq!((server.count(CREATE), server.keys(CLAIMS)), (3, vec![DATA.to_owned()]));
        let message = "ephemeral volume data: create PVC web-data: ";
        assert!(server.events().iter().any(|event| event.contains(message)), "{:?}", server.events());
    });
}

#[test]
fn a_claim_that_was_deleted_comes_again_while_its_pod_runs() {
    test(async {
        let server = Server::new();
        server.add(&user("web", &["data"]));
        let running = start(&server).await;
        server.change("pods", WEB, |pod| pod["status"]["phase"] = json!("Running"));
        running.at_rest().await;
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        assert_eq!((server.keys(CLAIMS), server.count(CREATE)), (vec![DATA.to_owned()], 2));
        server.delete("pods", WEB);
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        assert_eq!((server.keys(CLAIMS), server.count(CREATE)), (vec![], 2));
    });
}

#[test]
fn a_pod_that_was_deleted_behind_a_stale_cache_gets_no_claim() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        let read = server.on("get", "pods").once().hold();
        server.add(&user("web", &["data"]));
        read.arrived().await;
        server.hold_watches("pods");
        server.delete("pods", WEB);
        read.release();
        running.at_rest().await;
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}

#[test]
fn why_names_the_claim_that_is_in_the_way() {
    test(async {
        let server = Server::new();
        server.add(&claim("web-data"));
        server.add(&user("web", &["data"]));
        server.add(&pod("plain").phase("Pending"));
        let running = start_failing(&server).await;
        let now = || running.why(PATH).keys[0].now.clone();
        assert_eq!(now()[0].text, "report a name clash (claim web-data exists and was not created for this pod)");
        assert_eq!(now()[0].reason, json!({ "nameTaken": { "claim": "web-data" } }));
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        assert_eq!(now()[0].text, "nothing (each ephemeral volume has its claim)");
        assert!(running.why("/api/v1/namespaces/default/pods/plain").keys[0].now.is_empty());
    });
}
