//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use persistentvolume_protection_operator::controller::PersistentVolumeProtectionOperator;
use persistentvolume_protection_operator::objects::PROTECTION;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const PATCH: &str = "patch persistentvolumes disk";
const GET: &str = "get persistentvolumes disk";
const PATH: &str = "/api/v1/persistentvolumes/disk";

fn volume(name: &str) -> ObjectBuilder {
    object("v1", "PersistentVolume", name).namespace("")
}

fn bound(name: &str) -> ObjectBuilder {
    let claim = json!({ "namespace": "default", "name": "data" });
    volume(name).set(&["spec", "claimRef"], claim).set(&["status", "phase"], "Bound")
}

fn set_phase(server: &Server, name: &str, phase: &str) {
    server.change("persistentvolumes", name, |volume| volume["status"]["phase"] = phase.into());
}

async fn start(server: &Server) -> Running {
    start_at_rest::<PersistentVolumeProtectionOperator>(server, &[]).await
}

fn finalizers(server: &Server) -> Value {
    server.get("persistentvolumes", "disk").unwrap()["metadata"]["finalizers"].clone()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                for name in ["free", "held", "released", "staying"] {
                    server.add(&bound(name));
                }
            }),
            Do(|server| set_phase(server, "free", "Available")),
            Do(|server| {
                for name in ["free", "held", "released"] {
                    server.delete("persistentvolumes", name);
                }
            }),
            Do(|server| set_phase(server, "released", "Released")),
        ];
        let server = survives_kills::<PersistentVolumeProtectionOperator>(&[], &life).await;
        assert_eq!(server.keys("persistentvolumes"), ["held", "staying"]);
    });
}

#[test]
fn a_bound_volume_stays_until_its_claim_has_let_it_go() {
    test(async {
        let server = Server::new();
        server.add(&bound("disk").set(&["metadata", "finalizers"], json!(["example.com/hold"])));
        let running = start(&server).await;
        assert_eq!(finalizers(&server), json!(["example.com/hold", PROTECTION.finalizer]));
        assert_eq!(server.count(GET), 0, "its phase is of no interest while it is not being deleted");
        server.delete("persistentvolumes", "disk");
        running.at_rest().await;
        assert_eq!((server.writes().len(), server.count(GET)), (1, 1));
        set_phase(&server, "disk", "Released");
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!(["example.com/hold"]));
        assert_eq!((server.writes(), server.count(GET)), (vec![PATCH.to_owned(); 2], 2));
        assert_eq!(server.events(), Vec::<String>::new());
    });
}

/// Upstream: `TestPVProtectionController`, "saving PVC finalizer fails -> controller retries" and "finalizer removal fails ->
/// controller retries".
#[test]
fn a_write_that_fails_is_retried() {
    test(async {
        let server = Server::new();
        server.on("patch", "persistentvolumes").times(2).answer(403, "Forbidden", "Mock error");
        server.add(&volume("disk"));
        let running = start(&server).await;
        assert_eq!((server.count(PATCH), finalizers(&server)), (3, json!([PROTECTION.finalizer])));
        server.on("patch", "persistentvolumes").times(2).answer(403, "Forbidden", "Mock error");
        server.delete("persistentvolumes", "disk");
        running.at_rest().await;
        assert_eq!((server.count(PATCH), server.get("persistentvolumes", "disk")), (6, None));
    });
}

#[test]
fn a_volume_whose_phase_cannot_be_read_stays() {
    test(async {
        let server = Server::new();
        server.add(&volume("disk"));
        let running = start(&server).await;
        let refused = server.on("get", "persistentvolumes").times(4).answer(500, "InternalError", "etcd is down");
        let patched = server.on("patch", "persistentvolumes").hold();
        server.delete("persistentvolumes", "disk");
        patched.arrived().await;
        assert_eq!(refused.count(), 4, "it is patched after a read, and not before");
        patched.release();
        running.at_rest().await;
        assert_eq!(server.get("persistentvolumes", "disk"), None);
    });
}

#[test]
fn a_volume_that_is_bound_after_the_read_stays() {
    test(async {
        let server = Server::new();
        server.add(&volume("disk"));
        let running = start(&server).await;
        let patched = server.on("patch", "persistentvolumes").once().hold();
        server.delete("persistentvolumes", "disk");
        patched.arrived().await;
        set_phase(&server, "disk", "Bound");
        patched.release();
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!([PROTECTION.finalizer]));
        let why = running.why(PATH);
        assert_eq!(why.keys[0].last[0].outcome, shared::api::explain::Outcome::Done, "{why}");
    });
}

#[test]
fn a_volume_that_came_back_under_its_name_is_not_written_for_the_old_one() {
    test(async {
        let server = Server::new();
        server.add(&volume("disk"));
        let running = start(&server).await;
        let read = server.on("get", "persistentvolumes").once().hold();
        server.delete("persistentvolumes", "disk");
        read.arrived().await;
        server.change("persistentvolumes", "disk", |volume| volume["metadata"]["finalizers"] = json!([]));
        server.add(&bound("disk").uid_of("another").set(&["metadata", "finalizers"], json!([PROTECTION.finalizer])));
        read.release();
        running.at_rest().await;
        assert_eq!((server.count(PATCH), finalizers(&server)), (1, json!([PROTECTION.finalizer])));
    });
}

#[test]
fn why_names_the_claim_of_a_volume_that_cannot_go() {
    test(async {
        let server = Server::new();
        server.add(&bound("disk"));
        let running = start(&server).await;
        let now = || running.why(PATH).keys[0].now[0].text.clone();
        assert_eq!(now(), "keep (has the finalizer)");
        server.delete("persistentvolumes", "disk");
        running.at_rest().await;
        assert_eq!(now(), "read its phase (being deleted)");
        let why = running.why(PATH);
        let last = why.keys[0].last[0].stages.last().unwrap();
        assert_eq!(last.text, "keep (bound to claim default/data)");
        assert_eq!(last.reason, json!({ "bound": { "claim": "default/data" } }));
        set_phase(&server, "disk", "Released");
        running.at_rest().await;
        assert!(running.why(PATH).keys[0].now.is_empty());
    });
}
