//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use persistentvolumeclaim_protection_operator::controller::PersistentVolumeClaimProtectionOperator;
use persistentvolumeclaim_protection_operator::objects::PROTECTION;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod};

const CLAIMS: &str = "persistentvolumeclaims";
const DATA: &str = "default/data";
const LIST: &str = "list pods default/";
const PATH: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";

fn claim(name: &str) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", name)
}

/// A pod with a node that uses this claim.
fn user(name: &str, claim: &str) -> ObjectBuilder {
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": claim } });
    pod(name).set(&["spec", "volumes"], json!([volume]))
}

/// Being deleted, and held by somebody else too.
fn add_going(server: &Server) {
    let finalizers = json!([PROTECTION.finalizer, "example.com/hold"]);
    server.add(&claim("data").terminating().set(&["metadata", "finalizers"], finalizers));
}

async fn start(server: &Server) -> Running {
    start_at_rest::<PersistentVolumeClaimProtectionOperator>(server, &[]).await
}

fn finalizers(server: &Server) -> Value {
    server.get(CLAIMS, DATA).unwrap()["metadata"]["finalizers"].clone()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                for name in ["free", "held", "released", "staying"] {
                    server.add(&claim(name));
                }
                for name in ["held", "released", "staying"] {
                    server.add(&user(name, name));
                }
            }),
            Do(|server| {
                for name in ["free", "held", "released"] {
                    server.delete(CLAIMS, &format!("default/{name}"));
                }
            }),
            Do(|server| server.delete("pods", "default/released")),
            Pass(Duration::from_mins(1)),
        ];
        let server = survives_kills::<PersistentVolumeClaimProtectionOperator>(&[], &life).await;
        assert_eq!(server.keys(CLAIMS), ["default/held", "default/staying"]);
    });
}

#[test]
fn a_claim_stays_until_its_last_pod_is_gone() {
    test(async {
        let server = Server::new();
        server.add(&claim("data").set(&["metadata", "finalizers"], json!(["example.com/hold"])));
        for name in ["a", "b"] {
            server.add(&user(name, "data"));
        }
        let running = start(&server).await;
        assert_eq!(finalizers(&server), json!(["example.com/hold", PROTECTION.finalizer]));
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        server.delete("pods", "default/a");
        running.at_rest().await;
        assert_eq!(server.writes().len(), 1, "the other one uses it");
        server.delete("pods", "default/b");
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!(["example.com/hold"]));
        assert_eq!(server.events(), Vec::<String>::new());
    });
}

/// Upstream: `TestPVCProtectionController`, "saving PVC finalizer fails -> controller retries" and "finalizer removal fails
/// -> controller retries".
#[test]
fn a_write_that_fails_is_retried_and_a_removal_after_another_list() {
    test(async {
        let server = Server::new();
        let patch = "patch persistentvolumeclaims default/data";
        server.on("patch", CLAIMS).times(2).answer(403, "Forbidden", "Mock error");
        server.add(&claim("data"));
        let running = start(&server).await;
        assert_eq!((server.count(patch), finalizers(&server)), (3, json!([PROTECTION.finalizer])));
        server.on("patch", CLAIMS).times(2).answer(403, "Forbidden", "Mock error");
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        assert_eq!((server.count(patch), server.get(CLAIMS, DATA)), (6, None));
    });
}

#[test]
fn an_unknown_path_does_not_show_that_a_claim_is_gone() {
    test(async {
        let server = Server::new();
        server.on("patch", CLAIMS).once().answer(404, "", "404 page not found");
        server.add(&claim("data"));
        let _running = start(&server).await;
        assert_eq!(finalizers(&server), json!([PROTECTION.finalizer]));
    });
}

/// Upstream: `TestPVCProtectionController`, "multiple PVCs with finalizer for the same namespace; no alive pods -> finalizer
/// is removed" and "delete multiple PVCs of the same namespace; pod list fails for one PVC -> …".
#[test]
fn claims_that_are_deleted_together_share_a_list_and_wait_for_one_that_succeeds() {
    test(async {
        let server = Server::new();
        let names: Vec<String> = (0..20).map(|n| format!("data-{n}")).collect();
        for name in &names {
            server.add(&claim(name));
        }
        let running = start(&server).await;
        let informer = server.on("list", "pods").once().hold();
        for name in &names {
            server.delete(CLAIMS, &format!("default/{name}"));
        }
        informer.arrived().await;
        informer.release();
        // The informer has its list; the next ones are live.
        let refused = server.on("list", "pods").times(1).answer(403, "Forbidden", "Mock error");
        running.at_rest().await;
        assert_eq!((server.keys(CLAIMS), refused.count()), (Vec::<String>::new(), 1));
        assert!(server.count(LIST) <= 4, "{} lists for {} claims", server.count(LIST), names.len());
    });
}

/// Upstream: `TestPVCProtectionController`, "mix of deleted PVCs with some used by a pod and some unused -> finalizer is
/// removed only for unused PVCs".
#[test]
fn a_pod_that_the_cache_does_not_show_keeps_its_claim_and_no_other() {
    test(async {
        let server = Server::new();
        for name in ["data", "unused"] {
            server.add(&claim(name));
        }
        server.add(&claim("elsewhere").namespace("another"));
        // Its deletion begins the watch of pods, which then stands still.
        let hold = json!(["example.com/hold", PROTECTION.finalizer]);
        server.add(&claim("first").set(&["metadata", "finalizers"], hold).terminating());
        let running = start(&server).await;
        server.hold_watches("pods");
        server.add(&user("web", "data"));
        server.add(&user("web", "elsewhere").namespace("another"));
        for key in ["default/data", "default/unused", "another/elsewhere"] {
            server.delete(CLAIMS, key);
        }
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(server.keys(CLAIMS), ["another/elsewhere", "default/data", "default/first"]);
        let last = || running.why(PATH).keys[0].last[0].stages.last().unwrap().text.clone();
        assert_eq!(last(), "keep and check again (used by pods that are not in the cache: web)");
        server.delete("pods", "default/web");
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(server.get(CLAIMS, DATA), None);
    });
}

#[test]
fn a_claim_that_changes_after_the_list_is_decided_again() {
    test(async {
        let server = Server::new();
        server.add(&claim("data"));
        let running = start(&server).await;
        let patched = server.on("patch", CLAIMS).once().hold();
        server.delete(CLAIMS, DATA);
        patched.arrived().await;
        let before = server.count(LIST);
        server.change(CLAIMS, DATA, |claim| claim["metadata"]["labels"] = json!({ "a": "b" }));
        patched.release();
        running.at_rest().await;
        assert_eq!((server.get(CLAIMS, DATA), server.count(LIST)), (None, before + 1));
    });
}

#[test]
fn a_claim_that_came_back_under_its_name_is_not_written_for_the_old_one() {
    test(async {
        let server = Server::new();
        server.add(&claim("data"));
        let running = start(&server).await;
        let patched = server.on("patch", CLAIMS).once().hold();
        server.delete(CLAIMS, DATA);
        patched.arrived().await;
        server.change(CLAIMS, DATA, |claim| claim["metadata"]["finalizers"] = json!([]));
        let another = claim("data").uid_of("another");
        server.add(&another.set(&["metadata", "finalizers"], json!([PROTECTION.finalizer])));
        patched.release();
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!([PROTECTION.finalizer]));
    });
}

#[test]
fn an_ephemeral_volumes_claim_goes_before_its_pods_finalizers() {
    test(async {
        let server = Server::new();
        let volume = json!({ "name": "data", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } });
        let pod = pod("web").set(&["spec", "volumes"], json!([volume]));
        server.add(&pod.set(&["metadata", "finalizers"], json!(["example.com/hold"])));
        let uid = server.get("pods", "default/web").unwrap()["metadata"]["uid"].clone();
        let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true }]);
        server.add(&claim("web-data").set(&["metadata", "ownerReferences"], owner));
        let running = start(&server).await;
        server.delete(CLAIMS, "default/web-data");
        running.at_rest().await;
        assert_eq!(server.keys(CLAIMS), ["default/web-data"]);
        server.delete("pods", "default/web");
        running.at_rest().await;
        assert_eq!((server.keys(CLAIMS), server.keys("pods")), (vec![], vec!["default/web".to_owned()]));
    });
}

#[test]
fn pods_are_followed_only_while_a_claim_is_being_deleted() {
    test(async {
        let server = Server::new();
        server.add(&claim("staying"));
        server.add(&user("web", "data"));
        let remove = |server: &Server| server.change(CLAIMS, DATA, |claim| claim["metadata"]["finalizers"] = json!([]));
        is_followed_only_while_needed::<PersistentVolumeClaimProtectionOperator>(
            &server,
            "pods default/",
            add_going,
            remove,
        )
        .await;
    });
}

#[test]
fn no_claim_goes_before_the_pods_of_its_namespace_are_known() {
    let first = |server: &Server| {
        server.add(&user("web", "data"));
        add_going(server);
    };
    let then = |server: &Server| assert_eq!(finalizers(server), json!([PROTECTION.finalizer, "example.com/hold"]));
    test(the_first_one_waits::<PersistentVolumeClaimProtectionOperator>(&[], "pods", first, then));
}

#[test]
fn why_names_the_pods_that_keep_a_claim() {
    test(async {
        let server = Server::new();
        server.add(&claim("data"));
        for name in ["a", "b"] {
            server.add(&user(name, "data"));
        }
        let running = start(&server).await;
        let now = || running.why(PATH).keys[0].now.clone();
        assert_eq!(now()[0].text, "keep (has the finalizer)");
        server.delete(CLAIMS, DATA);
        running.at_rest().await;
        assert_eq!(now()[0].text, "keep (used by pods: a, b)");
        assert_eq!(now()[0].reason, json!({ "used": { "pods": ["a", "b"] } }));
        for name in ["a", "b"] {
            server.delete("pods", &format!("default/{name}"));
        }
        running.at_rest().await;
        assert!(now().is_empty());
    });
}
