//! Claims are bound, volumes reclaimed, and what is behind or lost harms nothing.

use std::time::Duration;

use persistentvolume_binder_operator::controller::PersistentVolumeBinderOperator;
use persistentvolume_binder_operator::objects::{BIND_COMPLETED, IN_TREE_FINALIZER, STORAGE_PROVISIONER};
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::is_followed_only_while_needed;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};

use crate::world::{CLAIMS, DATA, VOLUMES, at, claim, class, of_class, phases, start, volume};

const CLASSES: &str = "storageclasses";
const BIND_VOLUME: &str = "patch persistentvolumes ";
const DELETE: &str = "delete persistentvolumes";
const PATH: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";

/// No volume names a claim that names another one, and no two claims name one volume.
fn assert_each_has_its_own(server: &Server) {
    let mut given = Vec::new();
    for claim in server.list(CLAIMS) {
        let Some(volume) = claim["spec"]["volumeName"].as_str() else { continue };
        assert!(!given.contains(&volume.to_owned()), "{volume} is given twice");
        given.push(volume.to_owned());
        assert_eq!(at(server, VOLUMES, volume, "/spec/claimRef/uid"), claim["metadata"]["uid"]);
    }
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&volume("small", "1Gi", "Retain"));
                server.add(&volume("large", "10Gi", "Delete"));
                server.add(&class("waits", "WaitForFirstConsumer"));
            }),
            // Once both volumes are available, each claim has one that it gets in any order.
            Do(|server| {
                server.add(&of_class(claim("waits", "1Gi"), "waits"));
                server.add(&claim("data", "1Gi"));
                server.add(&claim("more", "5Gi"));
            }),
            Do(|server| {
                server.change(CLAIMS, "default/waits", |claim| {
                    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!("worker-0");
                });
            }),
            Do(|server| {
                server.delete(CLAIMS, "default/data");
                server.delete(CLAIMS, "default/more");
            }),
            Pass(Duration::from_secs(60)),
        ];
        let server = survives_kills::<PersistentVolumeBinderOperator>(&[], &life).await;
        let waits = at(&server, CLAIMS, "default/waits", "/metadata/annotations");
        assert_eq!(waits[STORAGE_PROVISIONER], "csi.example.com");
        assert_eq!((server.keys(VOLUMES), server.count(DELETE)), (vec!["small".to_owned()], 1));
        assert_eq!(at(&server, VOLUMES, "small", "/status/phase"), "Released");
    });
}

#[test]
fn a_binding_takes_four_writes_and_rests() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain").phase("Available"));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        assert_eq!(
            server.writes(),
            [
                "patch persistentvolumes small",
                "patch persistentvolumes/status small",
                "patch persistentvolumeclaims default/data",
                "patch persistentvolumeclaims/status default/data",
            ]
        );
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((server.writes().len(), phases(&server, DATA, "small")), (4, (json!("Bound"), json!("Bound"))));
        assert_eq!(at(&server, CLAIMS, DATA, "/status/capacity/storage"), "1Gi");
        assert_each_has_its_own(&server);
    });
}

#[test]
fn lost_answers_and_conflicts_bind_each_claim_once() {
    test(async {
        for (verb, target) in [("patch", VOLUMES), ("patch", CLAIMS)] {
            for status in ["", "/status"] {
                for lost in [true, false] {
                    let server = Server::new();
                    for number in 0..4 {
                        server.add(&volume(&format!("v{number}"), "1Gi", "Retain"));
                        server.add(&claim(&format!("c{number}"), "1Gi"));
                    }
                    let rule = server.on(verb, &format!("{target}{status}")).times(3);
                    let rule =
                        if lost { rule.lose() } else { rule.answer(409, "Conflict", "the object has been modified") };
                    let running = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
                    running.pass(Duration::from_secs(60)).await;
                    assert_eq!(rule.count(), 3);
                    assert_each_has_its_own(&server);
                    for number in 0..4 {
                        let bound = (json!("Bound"), json!("Bound"));
                        assert_eq!(phases(&server, &format!("default/c{number}"), &format!("v{number}")), bound);
                    }
                }
            }
        }
    });
}

#[test]
fn caches_that_are_behind_give_no_volume_away_twice() {
    test(async {
        for held in [VOLUMES, CLAIMS] {
            let server = Server::new();
            server.add(&volume("v0", "1Gi", "Retain").phase("Available"));
            server.add(&volume("v1", "1Gi", "Retain").phase("Available"));
            let running = start(&server).await;
            server.hold_watches(held);
            for number in 0..3 {
                server.add(&claim(&format!("c{number}"), "1Gi"));
            }
            running.pass(Duration::from_secs(30)).await;
            server.release_watches(held);
            running.pass(Duration::from_secs(60)).await;
            assert_each_has_its_own(&server);
            let bound = server.list(CLAIMS).into_iter().filter(|claim| claim["status"]["phase"] == "Bound").count();
            assert_eq!(bound, 2, "{held}");
        }
    });
}

#[test]
fn two_leaders_give_no_volume_away_twice() {
    test(async {
        let server = Server::new();
        let first = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
        let second = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
        for number in 0..6 {
            server.add(&claim(&format!("c{number}"), "1Gi"));
            server.add(&volume(&format!("v{number}"), "1Gi", "Delete"));
        }
        first.pass(Duration::from_secs(60)).await;
        second.at_rest().await;
        assert_each_has_its_own(&server);
        let bound = server.list(CLAIMS).into_iter().filter(|claim| claim["status"]["phase"] == "Bound").count();
        assert_eq!((bound, server.keys(VOLUMES).len(), server.count(DELETE)), (6, 6, 0));
    });
}

#[test]
fn a_restored_etcd_leads_to_the_bindings_that_it_has() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain").phase("Available"));
        server.add(&claim("data", "1Gi"));
        let backup = server.back_up();
        let running = start(&server).await;
        assert_eq!(phases(&server, DATA, "small"), (json!("Bound"), json!("Bound")));
        drop(running);
        server.restore(backup);
        assert_eq!(phases(&server, DATA, "small"), (json!("Pending"), json!("Available")));
        start(&server).await;
        assert_eq!(phases(&server, DATA, "small"), (json!("Bound"), json!("Bound")));
        assert_each_has_its_own(&server);
    });
}

#[test]
fn a_volume_that_a_restored_etcd_has_without_its_claim_is_for_a_claim_of_that_name() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain"));
        let running = start(&server).await;
        let backup = server.back_up();
        server.add(&claim("data", "1Gi"));
        running.at_rest().await;
        assert_eq!(phases(&server, DATA, "small"), (json!("Bound"), json!("Bound")));
        server.restore(backup);
        running.start_over().await;
        server.add(&claim("another", "1Gi"));
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(at(&server, VOLUMES, "small", "/spec/claimRef"), Value::Null);
        let told = "Warning FailedBinding: Claim \"default/data\" had this volume before etcd was restored from a backup. \
                    No other claim gets it.";
        assert!(server.events().iter().any(|event| event == told), "{:?}", server.events());
        let why = running.now("/api/v1/namespaces/default/persistentvolumeclaims/another").join(" ");
        assert!(why.contains("small: claim default/data had it before etcd was restored from a backup"), "{why}");
        server.add(&claim("data", "1Gi").uid_of("restored"));
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(phases(&server, DATA, "small"), (json!("Bound"), json!("Bound")));
        assert_each_has_its_own(&server);
    });
}

#[test]
fn a_volume_whose_claim_somebody_removes_is_free_again() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain"));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        server.change(VOLUMES, "small", |volume| {
            volume["spec"].as_object_mut().unwrap().remove("claimRef");
        });
        server.add(&claim("another", "1Gi"));
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(phases(&server, "default/another", "small"), (json!("Bound"), json!("Bound")));
    });
}

#[test]
fn a_volume_that_lost_its_claim_goes_to_no_other_claim() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain").phase("Available"));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        server.add(&claim("another", "1Gi"));
        running.at_rest().await;
        server.on("patch", VOLUMES).times(2).answer(500, "InternalError", "etcd is away");
        server.change(VOLUMES, "small", |volume| {
            volume["spec"].as_object_mut().unwrap().remove("claimRef");
            volume["status"]["phase"] = json!("Available");
        });
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(at(&server, VOLUMES, "small", "/spec/claimRef/name"), "data");
        assert_eq!(at(&server, CLAIMS, "default/another", "/spec/volumeName"), Value::Null);
    });
}

#[test]
fn neither_of_two_claims_gets_a_volume_that_both_had() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Delete").phase("Available"));
        for name in ["data", "twin"] {
            let claim = claim(name, "1Gi").annotation(BIND_COMPLETED, "yes").set(&["spec", "volumeName"], "small");
            server.add(&claim.phase("Bound"));
        }
        let running = start(&server).await;
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(server.writes(), [""; 0]);
        let message = "Warning FailedBinding: volume \"small\" already bound to a different claim.";
        assert!(server.events().iter().any(|event| event.contains(message)), "{:?}", server.events());
    });
}

#[test]
fn a_claim_that_only_the_apiserver_has_keeps_its_volume() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        server.hold_watches(CLAIMS);
        server.add(&claim("data", "1Gi").set(&["spec", "volumeName"], "small"));
        let uid = at(&server, CLAIMS, DATA, "/metadata/uid");
        let reference = json!({ "namespace": "default", "name": "data", "uid": uid });
        server.add(&volume("small", "1Gi", "Delete").set(&["spec", "claimRef"], reference));
        running.pass(Duration::from_secs(30)).await;
        assert_eq!((at(&server, VOLUMES, "small", "/status/phase"), server.count(DELETE)), (json!("Bound"), 0));
    });
}

#[test]
fn a_volume_is_not_deleted_by_a_cache_that_is_behind() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Delete").phase("Available"));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        let read = server.on("get", VOLUMES).once().hold();
        server.delete(CLAIMS, DATA);
        read.arrived().await;
        server.hold_watches(VOLUMES);
        server.change(VOLUMES, "small", |volume| volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain"));
        read.release();
        running.pass(Duration::from_secs(30)).await;
        server.release_watches(VOLUMES);
        running.pass(Duration::from_secs(30)).await;
        assert_eq!((at(&server, VOLUMES, "small", "/status/phase"), server.count(DELETE)), (json!("Released"), 0));
    });
}

#[test]
fn a_deleted_volume_loses_its_finalizer_and_is_for_its_version() {
    test(async {
        let server = Server::new();
        let provisioned =
            volume("small", "1Gi", "Delete").annotation("pv.kubernetes.io/provisioned-by", "kubernetes.io/host-path");
        server.add(&provisioned.set(&["metadata", "finalizers"], json!([IN_TREE_FINALIZER])));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        server.delete(CLAIMS, DATA);
        running.pass(Duration::from_secs(30)).await;
        assert_eq!((server.keys(VOLUMES), server.count(DELETE)), (Vec::new(), 1));
    });
}

#[test]
fn a_claim_is_lost_only_if_the_apiserver_does_not_have_its_volume() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain").phase("Available"));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        server.delete(VOLUMES, "small");
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(at(&server, CLAIMS, DATA, "/status/phase"), "Lost");
        assert!(server.count("get persistentvolumes small") > 0);
        let lost = server.events().into_iter().filter(|event| event.contains("ClaimLost")).count();
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((lost, server.count(BIND_VOLUME)), (1, 1));
    });
}

#[test]
fn a_claim_that_names_what_can_be_no_volume_is_lost_without_a_request() {
    test(async {
        let server = Server::new();
        for (name, volume) in [("data", "a/status"), ("logs", "..")] {
            server.add(&claim(name, "1Gi").annotation(BIND_COMPLETED, "yes").set(&["spec", "volumeName"], volume));
        }
        start(&server).await;
        for key in server.keys(CLAIMS) {
            assert_eq!(at(&server, CLAIMS, &key, "/status/phase"), "Lost", "{key}");
        }
        let lost = server.events().into_iter().filter(|event| event.contains("ClaimLost")).count();
        assert_eq!((lost, server.count("get persistentvolumes")), (2, 0));
    });
}

#[test]
fn a_claim_is_not_lost_while_the_cache_is_behind_the_volume() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        server.hold_watches(VOLUMES);
        server.add(&claim("data", "1Gi").annotation(BIND_COMPLETED, "yes").set(&["spec", "volumeName"], "small"));
        let uid = at(&server, CLAIMS, DATA, "/metadata/uid");
        let reference = json!({ "namespace": "default", "name": "data", "uid": uid });
        server.add(&volume("small", "1Gi", "Retain").set(&["spec", "claimRef"], reference));
        running.pass(Duration::from_secs(40)).await;
        assert_eq!(server.writes(), [""; 0]);
        server.release_watches(VOLUMES);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(phases(&server, DATA, "small"), (json!("Bound"), json!("Bound")));
    });
}

#[test]
fn a_claim_gets_the_default_class_that_comes_later() {
    test(async {
        let server = Server::new();
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        server.add(&class("standard", "Immediate").annotation("storageclass.kubernetes.io/is-default-class", "true"));
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(at(&server, CLAIMS, DATA, "/spec/storageClassName"), "standard");
        let annotations = at(&server, CLAIMS, DATA, "/metadata/annotations");
        assert_eq!(annotations[STORAGE_PROVISIONER], "csi.example.com");
        assert!(server.events().iter().any(|event| event.contains("ExternalProvisioning")), "{:?}", server.events());
    });
}

#[test]
fn a_volume_that_comes_later_is_bound_at_once() {
    test(async {
        let server = Server::new();
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        server.add(&volume("small", "1Gi", "Retain"));
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(phases(&server, DATA, "small"), (json!("Bound"), json!("Bound")));
    });
}

#[test]
fn a_provisioner_that_cannot_be_named_is_reported_and_tried_again() {
    test(async {
        let server = Server::new();
        server.add(&class("fast", "Immediate"));
        server.on("patch", CLAIMS).once().answer(500, "InternalError", "etcd is away");
        server.add(&of_class(claim("data", "1Gi"), "fast"));
        let running = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
        running.pass(Duration::from_secs(10)).await;
        let annotations = at(&server, CLAIMS, DATA, "/metadata/annotations");
        assert_eq!(annotations[STORAGE_PROVISIONER], "csi.example.com");
        let failed = "Warning ProvisioningFailed: Error saving claim: ";
        assert!(server.events().iter().any(|event| event.contains(failed)), "{:?}", server.events());
    });
}

#[test]
fn why_explains_a_pending_claim_by_the_volumes_that_do_not_fit() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain").phase("Available"));
        server.add(&of_class(volume("gold", "10Gi", "Retain"), "gold").phase("Available"));
        server.add(&claim("data", "10Gi"));
        let running = start(&server).await;
        let now = running.why(PATH).keys[0].now[0].text.clone();
        assert_eq!(
            now,
            "tell PersistentVolumeClaim FailedBinding (no volume fits and it has no class; volume gold: its class is gold; \
             volume small: it has only 1Gi)"
        );
    });
}

#[test]
fn why_names_the_policy_of_a_volume_without_its_claim() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Retain"));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        let now = running.why("/api/v1/persistentvolumes/small").keys[0].now[0].text.clone();
        assert_eq!(now, "nothing (its claim default/data is gone, and its policy is Retain)");
    });
}

#[test]
fn classes_and_pods_are_followed_only_while_a_claim_needs_a_volume() {
    test(async {
        for resource in [CLASSES, "pods default/"] {
            let server = Server::new();
            is_followed_only_while_needed::<PersistentVolumeBinderOperator>(
                &server,
                resource,
                |server| server.add(&claim("data", "1Gi")),
                |server| server.delete(CLAIMS, DATA),
            )
            .await;
        }
    });
}
