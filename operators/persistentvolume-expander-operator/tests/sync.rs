//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use persistentvolume_expander_operator::controller::PersistentVolumeExpanderOperator;
use persistentvolume_expander_operator::objects::RESIZER;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const CLAIMS: &str = "persistentvolumeclaims";
const DATA: &str = "default/data";
const GET: &str = "get persistentvolumes data";
const PATCH: &str = "patch persistentvolumeclaims/status default/data";
const PATH: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";

/// A claim that has 1Gi and is bound to the volume of its name.
fn claim(name: &str, wants: &str) -> ObjectBuilder {
    let spec = json!({ "volumeName": name, "resources": { "requests": { "storage": wants } } });
    let status = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } });
    object("v1", "PersistentVolumeClaim", name).set(&["spec"], spec).set(&["status"], status)
}

/// Adds a claim and its volume.
fn add(server: &Server, name: &str, wants: &str, source: &str) {
    server.add(&claim(name, wants));
    let uid = server.get(CLAIMS, &format!("default/{name}")).unwrap()["metadata"]["uid"].clone();
    let claim = json!({ "namespace": "default", "name": name, "uid": uid });
    let volume = object("v1", "PersistentVolume", name).namespace("").set(&["spec", "claimRef"], claim);
    server.add(&volume.set(&["spec", source], json!({})));
}

fn grow(server: &Server, name: &str, wants: &str) {
    server.change(CLAIMS, &format!("default/{name}"), |claim| {
        claim["spec"]["resources"]["requests"]["storage"] = json!(wants);
    });
}

async fn start(server: &Server) -> Running {
    start_at_rest::<PersistentVolumeExpanderOperator>(server, &[]).await
}

fn resizer(server: &Server, name: &str) -> Value {
    server.get(CLAIMS, &format!("default/{name}")).unwrap()["metadata"]["annotations"][RESIZER].clone()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add(server, "ebs", "1Gi", "awsElasticBlockStore");
                add(server, "cinder", "2Gi", "cinder");
                add(server, "csi", "2Gi", "csi");
            }),
            Do(|server| grow(server, "ebs", "2Gi")),
        ];
        let server = survives_kills::<PersistentVolumeExpanderOperator>(&[], &life).await;
        assert_eq!(resizer(&server, "ebs"), "ebs.csi.aws.com");
        assert_eq!(resizer(&server, "cinder"), "cinder.csi.openstack.org");
        assert_eq!(resizer(&server, "csi"), Value::Null);
    });
}

#[test]
fn claims_of_the_right_size_cost_no_request() {
    test(async {
        let server = Server::new();
        add(&server, "data", "1Gi", "csi");
        start(&server).await;
        assert_eq!((server.count(GET), server.writes()), (0, Vec::new()));
    });
}

#[test]
fn a_volume_that_cannot_exist_costs_no_request() {
    test(async {
        let server = Server::new();
        server.add(&claim("data", "2Gi").set(&["spec", "volumeName"], "a/status"));
        let running = Running::start::<PersistentVolumeExpanderOperator>(&server, &[]);
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(server.count("get persistentvolumes"), 0);
        let stages = &running.why(PATH).keys[0].last[0].stages;
        assert_eq!(stages.last().unwrap().text, "check again (its volume a/status does not exist)");
    });
}

#[test]
fn a_claim_of_a_csi_volume_gets_an_event_and_no_write() {
    test(async {
        let server = Server::new();
        add(&server, "data", "1Gi", "csi");
        let running = start(&server).await;
        grow(&server, "data", "2Gi");
        running.pass(Duration::from_secs(5)).await;
        let events = server.events();
        let message = "waiting for an external controller to expand this PVC";
        assert!(
            events.iter().any(|event| event.contains("ExternalExpanding") && event.contains(message)),
            "{events:?}"
        );
        assert_eq!(server.count(PATCH), 0);
    });
}

#[test]
fn a_write_that_fails_is_reported_and_tried_again() {
    test(async {
        let server = Server::new();
        add(&server, "data", "2Gi", "awsElasticBlockStore");
        let patched = server.on("patch", "persistentvolumeclaims/status").once().hold();
        let running = Running::start::<PersistentVolumeExpanderOperator>(&server, &[]);
        patched.arrived().await;
        // Events of one instant would have one name.
        running.pass(Duration::from_secs(1)).await;
        server.change(CLAIMS, DATA, |claim| claim["metadata"]["labels"] = json!({ "a": "b" }));
        patched.release();
        running.at_rest().await;
        running.pass(Duration::from_secs(10)).await;
        assert_eq!((server.count(PATCH), resizer(&server, "data")), (2, json!("ebs.csi.aws.com")));
        let events = server.events();
        for message in [
            "Warning ExternalExpanding: error setting resizer annotation to pvc default/data, with error ",
            "Normal ExternalExpanding: CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to \
             expand the pvc",
        ] {
            assert!(events.iter().any(|event| event.contains(message)), "{events:?}");
        }
    });
}

#[test]
fn a_claim_that_came_back_under_its_name_is_not_written_for_the_old_one() {
    test(async {
        let server = Server::new();
        add(&server, "data", "2Gi", "awsElasticBlockStore");
        let patched = server.on("patch", "persistentvolumeclaims/status").once().hold();
        let running = Running::start::<PersistentVolumeExpanderOperator>(&server, &[]);
        patched.arrived().await;
        server.delete(CLAIMS, DATA);
        server.add(&claim("data", "2Gi").uid_of("another"));
        patched.release();
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(resizer(&server, "data"), Value::Null);
        let stages = &running.why(PATH).keys[0].last[0].stages;
        assert_eq!(stages.last().unwrap().text, "check again (its volume data is not bound to it)");
    });
}

#[test]
fn why_names_the_resizer_that_a_claim_waits_for() {
    test(async {
        let server = Server::new();
        add(&server, "data", "1Gi", "awsElasticBlockStore");
        let running = start(&server).await;
        let now = || running.why(PATH).keys[0].now[0].text.clone();
        assert_eq!(now(), "nothing (its volume is large enough)");
        grow(&server, "data", "2Gi");
        running.at_rest().await;
        assert_eq!(now(), "read the volume (to grow from 1Gi to 2Gi)");
        let stages = running.why(PATH).keys[0].last[0].stages.clone();
        let expected = json!({ "migrated": { "plugin": "kubernetes.io/aws-ebs", "driver": "ebs.csi.aws.com" } });
        assert_eq!(stages.last().unwrap().reason, expected);
    });
}
