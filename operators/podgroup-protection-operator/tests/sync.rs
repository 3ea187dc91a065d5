//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use podgroup_protection_operator::controller::PodGroupProtectionOperator;
use podgroup_protection_operator::objects::PROTECTION;
use serde_json::{Value, json};
use shared::api::resource::{POD_GROUPS, Resource};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::is_followed_only_while_needed;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod};

const KIND: &str = "podgroups";
const GROUP: &str = "default/group";
const PATH: &str = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/group";
/// By then it has noticed in any case that the kind is served.
const NOTICED: Duration = Duration::from_secs(301);

/// With the finalizer, as the apiserver creates it.
fn group(name: &str) -> ObjectBuilder {
    let group = object("scheduling.k8s.io/v1alpha2", "PodGroup", name);
    group.set(&["metadata", "finalizers"], json!([PROTECTION.finalizer]))
}

/// Being deleted, and held by somebody else too.
fn add_going(server: &Server) {
    let finalizers = json!([PROTECTION.finalizer, "example.com/hold"]);
    server.add(&group("group").terminating().set(&["metadata", "finalizers"], finalizers));
}

fn user(name: &str, group: &str) -> ObjectBuilder {
    pod(name).set(&["spec", "schedulingGroup", "podGroupName"], group)
}

fn serving() -> Server {
    let server = Server::new();
    server.serve(POD_GROUPS);
    server
}

async fn start(server: &Server) -> Running {
    start_at_rest::<PodGroupProtectionOperator>(server, &[]).await
}

fn finalizers(server: &Server) -> Value {
    server.get(KIND, GROUP).unwrap()["metadata"]["finalizers"].clone()
}

fn now(running: &Running) -> Vec<String> {
    let keys = running.why(PATH).keys.into_iter();
    keys.flat_map(|key| key.now).map(|stage| stage.text).collect()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| server.serve(POD_GROUPS)),
            Pass(NOTICED),
            Do(|server| {
                for name in ["free", "held", "released", "ended", "staying"] {
                    server.add(&group(name));
                }
                for name in ["held", "released", "ended", "staying"] {
                    server.add(&user(name, name));
                }
            }),
            Do(|server| {
                for name in ["free", "held", "released", "ended"] {
                    server.delete(KIND, &format!("default/{name}"));
                }
            }),
            Do(|server| server.delete("pods", "default/released")),
            Do(|server| server.change("pods", "default/ended", |pod| pod["status"]["phase"] = "Succeeded".into())),
            Pass(Duration::from_mins(1)),
        ];
        let server = survives_kills::<PodGroupProtectionOperator>(&[], &life).await;
        assert_eq!(server.keys(KIND), ["default/held", "default/staying"]);
    });
}

/// Upstream's controller of 1.37 reads the first of these, and that of 1.36 the last.
#[test]
fn groups_are_let_go_in_each_version_in_which_apiservers_serve_them() {
    for version in ["v1beta1", "v1alpha3", "v1alpha2"] {
        test(async {
            let server = Server::new();
            server.withdraw(KIND);
            server.serve(Resource { version: version.into(), ..POD_GROUPS });
            let group = object(&format!("scheduling.k8s.io/{version}"), "PodGroup", "group").terminating();
            server.add(&group.set(&["metadata", "finalizers"], json!([PROTECTION.finalizer])));
            start(&server).await;
            assert_eq!(server.keys(KIND), [""; 0], "{version}");
        });
    }
}

#[test]
fn groups_are_followed_in_another_version_after_an_upgrade_of_the_apiserver() {
    test(async {
        let server = serving();
        let running = start(&server).await;
        server.withdraw(KIND);
        server.serve(Resource { version: "v1beta1".into(), ..POD_GROUPS });
        let group = object("scheduling.k8s.io/v1beta1", "PodGroup", "group").terminating();
        server.add(&group.set(&["metadata", "finalizers"], json!([PROTECTION.finalizer])));
        running.pass(NOTICED + Duration::from_secs(31)).await;
        assert_eq!(server.keys(KIND), [""; 0]);
    });
}

/// Upstream: `TestPodGroupProtectionController`, its cases with pods that have ended, and one that is deleted;
/// `TestIsPodTerminated`.
#[test]
fn pods_that_have_ended_keep_no_group() {
    test(async {
        for (phases, expected) in [
            (&["Succeeded"][..], false),
            (&["Failed"], false),
            (&["Running", "Succeeded"], true),
            (&["Pending"], true),
            (&["Unknown", "Failed"], true),
        ] {
            let server = serving();
            add_going(&server);
            for (at, phase) in phases.iter().enumerate() {
                server.add(&user(&format!("pod-{at}"), "group").phase(phase));
            }
            let running = start(&server).await;
            let is_kept = finalizers(&server).as_array().unwrap().contains(&json!(PROTECTION.finalizer));
            assert_eq!(is_kept, expected, "{phases:?}");
            server.delete("pods", "default/pod-0");
            running.at_rest().await;
            assert_eq!(finalizers(&server), json!(["example.com/hold"]), "{phases:?}");
        }
    });
}

/// Upstream: `TestPodGroupProtectionController`, "terminated pod references non-existent PodGroup, controller handles
/// gracefully".
#[test]
fn a_pod_of_no_group_leads_to_nothing() {
    test(async {
        let server = serving();
        server.add(&user("pod", "group").phase("Succeeded"));
        let _running = start(&server).await;
        assert_eq!(server.writes(), [""; 0]);
    });
}

#[test]
fn nothing_is_followed_where_the_kind_is_not_served() {
    test(async {
        let server = Server::new();
        server.withdraw("podgroups");
        let running = start(&server).await;
        running.pass(NOTICED).await;
        assert_eq!(server.requests(), [""; 0]);
        server.serve(POD_GROUPS);
        add_going(&server);
        running.pass(NOTICED).await;
        assert_eq!(finalizers(&server), json!(["example.com/hold"]));
    });
}

#[test]
fn pods_are_followed_while_a_group_is_being_deleted() {
    test(async {
        let server = serving();
        server.add(&user("user", "group"));
        let remove = |server: &Server| server.change(KIND, GROUP, |group| group["metadata"]["finalizers"] = json!([]));
        is_followed_only_while_needed::<PodGroupProtectionOperator>(&server, "pods default/", add_going, remove).await;
    });
}

#[test]
fn no_finalizer_goes_before_the_pods_are_listed() {
    test(async {
        let server = serving();
        let refused = server.on("list", "pods").answer(500, "InternalError", "etcd is down");
        add_going(&server);
        let running = Running::start::<PodGroupProtectionOperator>(&server, &[]);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!((refused.count() > 1, server.writes()), (true, Vec::new()));
        refused.times(0);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(finalizers(&server), json!(["example.com/hold"]));
    });
}

#[test]
fn a_pod_that_the_cache_does_not_show_keeps_its_group() {
    test(async {
        let server = serving();
        add_going(&server);
        server.add(&user("first", "group"));
        let running = start(&server).await;
        server.delete("pods", "default/first");
        server.hold_watches("pods");
        server.add(&user("second", "group"));
        running.pass(Duration::from_secs(10)).await;
        let last = running.why(PATH).keys[0].last[0].stages.last().unwrap().text.clone();
        assert_eq!(last, "keep and check again (used by pods that are not in the cache: second)");
        server.release_watches("pods");
        running.pass(Duration::from_secs(10)).await;
        assert_eq!((now(&running), server.writes()), (vec!["keep (used by pods: second)".to_owned()], vec![]));
    });
}

#[test]
fn groups_that_are_deleted_together_share_a_list() {
    test(async {
        let server = serving();
        for number in 0..20 {
            server.add(&group(&format!("group-{number}")));
        }
        let running = start(&server).await;
        let first = server.on("list", "pods").once().hold();
        for number in 0..20 {
            server.delete(KIND, &format!("default/group-{number}"));
        }
        first.arrived().await;
        first.release();
        running.at_rest().await;
        assert_eq!(server.keys(KIND), [""; 0]);
        assert!(server.count("list pods default/") <= 3, "{} lists", server.count("list pods default/"));
    });
}

#[test]
fn a_group_that_came_back_under_its_name_is_not_written_for_the_old_one() {
    test(async {
        let server = serving();
        server.add(&group("group"));
        let running = start(&server).await;
        let held = server.on("patch", KIND).once().hold();
        server.delete(KIND, GROUP);
        held.arrived().await;
        server.change(KIND, GROUP, |group| group["metadata"]["finalizers"] = json!([]));
        server.add(&group("group").uid_of("another"));
        held.release();
        running.at_rest().await;
        assert_eq!(finalizers(&server), json!([PROTECTION.finalizer]));
    });
}

#[test]
fn the_answer_of_a_patch_may_be_lost() {
    test(async {
        let server = serving();
        add_going(&server);
        server.on("patch", KIND).once().lose();
        let _running = start(&server).await;
        assert_eq!((finalizers(&server), server.writes().len()), (json!(["example.com/hold"]), 1));
    });
}

#[test]
fn why_names_the_pods_that_keep_a_group() {
    test(async {
        let server = serving();
        add_going(&server);
        server.add(&user("web", "group"));
        let running = start(&server).await;
        assert_eq!(now(&running), ["keep (used by pods: web)"]);
        let reason = running.why(PATH).keys[0].now[0].reason.clone();
        assert_eq!(reason, json!({ "used": { "pods": ["web"] } }));
    });
}
