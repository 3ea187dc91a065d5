//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object};
use volumeattributesclass_protection_operator::controller::VolumeAttributesClassProtectionOperator;
use volumeattributesclass_protection_operator::objects::PROTECTION;

const CLASSES: &str = "volumeattributesclasses";
const VOLUMES: &str = "persistentvolumes";
const CLAIMS: &str = "persistentvolumeclaims";
const PATH: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses/gold";
const PATCH: &str = "patch volumeattributesclasses gold";

fn class(name: &str) -> ObjectBuilder {
    object("storage.k8s.io/v1", "VolumeAttributesClass", name).namespace("")
}

fn volume(name: &str, class: &str) -> ObjectBuilder {
    object("v1", "PersistentVolume", name).namespace("").set(&["spec", "volumeAttributesClassName"], class)
}

fn claim(name: &str, class: &str) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", name).set(&["spec", "volumeAttributesClassName"], class)
}

/// Being deleted, and held by somebody else too.
fn add_going(server: &Server) {
    let finalizers = json!([PROTECTION.finalizer, "example.com/hold"]);
    server.add(&class("gold").terminating().set(&["metadata", "finalizers"], finalizers));
}

async fn start(server: &Server) -> Running {
    start_at_rest::<VolumeAttributesClassProtectionOperator>(server, &[]).await
}

fn finalizers(server: &Server) -> Value {
    server.get(CLASSES, "gold").unwrap()["metadata"]["finalizers"].clone()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                for name in ["free", "held", "released", "staying"] {
                    server.add(&class(name));
                }
                server.add(&volume("disk", "held"));
                server.add(&claim("data", "released"));
                server.add(&claim("other", "staying"));
            }),
            Do(|server| {
                for name in ["free", "held", "released"] {
                    server.delete(CLASSES, name);
                }
            }),
            Do(|server| server.delete(CLAIMS, "default/data")),
            Pass(Duration::from_mins(1)),
        ];
        let server = survives_kills::<VolumeAttributesClassProtectionOperator>(&[], &life).await;
        assert_eq!(server.keys(CLASSES), ["held", "staying"]);
    });
}

#[test]
fn a_class_stays_until_no_volume_and_no_claim_names_it() {
    test(async {
        let server = Server::new();
        server.add(&class("gold").set(&["metadata", "finalizers"], json!(["example.com/hold"])));
        server.add(&volume("disk", "gold"));
        server.add(&claim("data", "gold"));
        let running = start(&server).await;
        assert_eq!(finalizers(&server), json!(["example.com/hold", PROTECTION.finalizer]));
        server.delete(CLASSES, "gold");
        running.at_rest().await;
        server.change(VOLUMES, "disk", |volume| volume["spec"]["volumeAttributesClassName"] = "silver".into());
        running.at_rest().await;
        let asked = json!({ "targetVolumeAttributesClassName": "gold" });
        server.change(CLAIMS, "default/data", |claim| {
            claim["spec"]["volumeAttributesClassName"] = "silver".into();
            claim["status"]["modifyVolumeStatus"] = asked;
        });
        running.at_rest().await;
        assert_eq!(server.writes(), [PATCH], "the claim is still being changed");
        server.change(CLAIMS, "default/data", |claim| claim["status"]["modifyVolumeStatus"] = json!(null));
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!(["example.com/hold"]));
        assert_eq!(server.events(), Vec::<String>::new());
    });
}

/// Upstream: `TestVACProtectionController`, "saving VAC finalizer fails -> controller retries" and "finalizer removal fails
/// -> controller retries".
#[test]
fn a_write_that_fails_is_retried() {
    test(async {
        let server = Server::new();
        server.on("patch", CLASSES).times(2).answer(403, "Forbidden", "Mock error");
        server.add(&class("gold"));
        let running = start(&server).await;
        assert_eq!((server.count(PATCH), finalizers(&server)), (3, json!([PROTECTION.finalizer])));
        server.on("patch", CLASSES).times(2).answer(403, "Forbidden", "Mock error");
        server.delete(CLASSES, "gold");
        running.at_rest().await;
        assert_eq!((server.count(PATCH), server.get(CLASSES, "gold")), (6, None));
    });
}

/// What upstream's own comment says it cannot see.
#[test]
fn a_claim_or_a_volume_that_the_caches_do_not_show_keeps_its_class() {
    test(async {
        let server = Server::new();
        server.add(&class("gold"));
        // Its deletion begins the watches, which then stand still.
        let hold = json!(["example.com/hold", PROTECTION.finalizer]);
        server.add(&class("first").set(&["metadata", "finalizers"], hold).terminating());
        let running = start(&server).await;
        let last = || running.why(PATH).keys[0].last[0].stages.last().unwrap().text.clone();
        server.hold_watches(CLAIMS);
        server.hold_watches(VOLUMES);
        server.add(&claim("data", "gold"));
        server.delete(CLASSES, "gold");
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(last(), "keep and check again (named by what is not in the caches: claims: default/data)");
        server.add(&volume("disk", "gold"));
        server.delete(CLAIMS, "default/data");
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(last(), "keep and check again (named by what is not in the caches: volumes: disk)");
        server.delete(VOLUMES, "disk");
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(server.get(CLASSES, "gold"), None);
    });
}

#[test]
fn a_class_stays_while_what_names_it_cannot_be_listed() {
    for resource in [CLAIMS, VOLUMES] {
        test(async {
            let server = Server::new();
            server.add(&class("gold"));
            let hold = json!(["example.com/hold", PROTECTION.finalizer]);
            server.add(&class("first").set(&["metadata", "finalizers"], hold).terminating());
            let running = start(&server).await;
            let refused = server.on("list", resource).answer(500, "InternalError", "etcd is down");
            server.delete(CLASSES, "gold");
            running.pass(Duration::from_secs(10)).await;
            assert!(refused.count() > 1 && server.get(CLASSES, "gold").is_some(), "{resource}");
            refused.times(0);
            running.pass(Duration::from_mins(1)).await;
            assert_eq!(server.get(CLASSES, "gold"), None);
        });
    }
}

#[test]
fn a_class_that_came_back_under_its_name_is_not_written_for_the_old_one() {
    test(async {
        let server = Server::new();
        server.add(&class("gold"));
        let running = start(&server).await;
        let patched = server.on("patch", CLASSES).once().hold();
        server.delete(CLASSES, "gold");
        patched.arrived().await;
        server.change(CLASSES, "gold", |class| class["metadata"]["finalizers"] = json!([]));
        let another = class("gold").uid_of("another");
        server.add(&another.set(&["metadata", "finalizers"], json!([PROTECTION.finalizer])));
        patched.release();
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!([PROTECTION.finalizer]));
    });
}

#[test]
fn claims_and_volumes_are_followed_only_while_a_class_is_being_deleted() {
    for (resource, extra) in [(CLAIMS, VOLUMES), (VOLUMES, CLAIMS)] {
        test(async {
            let server = Server::new();
            server.add(&class("staying"));
            server.add(&volume("disk", "gold"));
            server.add(&claim("data", "gold"));
            let remove = |server: &Server| {
                server.change(CLASSES, "gold", |class| class["metadata"]["finalizers"] = json!([]));
            };
            is_followed_only_while_needed::<VolumeAttributesClassProtectionOperator>(
                &server, resource, add_going, remove,
            )
            .await;
            assert!(server.count(&format!("watch {extra}")) > 0);
        });
    }
}

#[test]
fn no_class_goes_before_claims_and_volumes_are_known() {
    for resource in [CLAIMS, VOLUMES] {
        let first = |server: &Server| {
            server.add(&volume("disk", "gold"));
            server.add(&claim("data", "gold"));
            add_going(server);
        };
        let then = |server: &Server| assert_eq!(finalizers(server), json!([PROTECTION.finalizer, "example.com/hold"]));
        test(the_first_one_waits::<VolumeAttributesClassProtectionOperator>(&[], resource, first, then));
    }
}

#[test]
fn why_names_the_volumes_and_claims_that_keep_a_class() {
    test(async {
        let server = Server::new();
        server.add(&class("gold"));
        server.add(&volume("disk", "gold"));
        server.add(&claim("data", "gold"));
        let running = start(&server).await;
        let now = || running.why(PATH).keys[0].now.clone();
        assert_eq!(now()[0].text, "keep (has the finalizer)");
        server.delete(CLASSES, "gold");
        running.at_rest().await;
        assert_eq!(now()[0].text, "keep (named by volumes: disk; claims: default/data)");
        assert_eq!(now()[0].reason, json!({ "used": { "volumes": ["disk"], "claims": ["default/data"] } }));
        server.delete(VOLUMES, "disk");
        server.delete(CLAIMS, "default/data");
        running.at_rest().await;
        assert!(now().is_empty());
    });
}
