//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its events.

use std::time::Duration;

use selinux_warning_operator::controller::SelinuxWarningOperator;
use serde_json::{Value, json};
use shared::api::resource::CSI_DRIVERS;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod, uid};

const WEB: &str = "default/web";
const PATH: &str = "/api/v1/namespaces/default/pods/web";

/// A pod with a label that mounts the claim `data`.
fn user(name: &str, level: &str) -> ObjectBuilder {
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data" } });
    mounting(pod(name), level, &volume)
}

fn mounting(pod: ObjectBuilder, level: &str, volume: &Value) -> ObjectBuilder {
    let containers = json!([{ "name": "main", "volumeMounts": [{ "name": "data" }] }]);
    let context = json!({ "seLinuxOptions": { "level": level } });
    let pod = pod.set(&["spec", "securityContext"], context).set(&["spec", "containers"], containers);
    pod.set(&["spec", "volumes"], json!([volume]))
}

/// A pod without a claim whose label needs drivers to be known, and no more.
fn iscsi(name: &str, level: &str) -> ObjectBuilder {
    mounting(pod(name), level, &json!({ "name": "data", "iscsi": { "targetPortal": "p", "iqn": "i", "lun": 0 } }))
}

fn claim() -> ObjectBuilder {
    let claim = object("v1", "PersistentVolumeClaim", "data").set(&["spec", "volumeName"], "disk");
    claim.set(&["status", "phase"], "Bound")
}

fn volume() -> ObjectBuilder {
    let claim = json!({ "namespace": "default", "name": "data", "uid": uid("data").to_string() });
    let volume = object("v1", "PersistentVolume", "disk").namespace("").set(&["spec", "claimRef"], claim);
    volume.set(&["spec", "csi"], json!({ "driver": "d", "volumeHandle": "1" }))
}

fn driver(mounts_with_label: bool) -> ObjectBuilder {
    object("storage.k8s.io/v1", "CSIDriver", "d").namespace("").set(&["spec", "seLinuxMount"], mounts_with_label)
}

fn server(objects: &[ObjectBuilder]) -> Server {
    let server = Server::new();
    server.serve(CSI_DRIVERS);
    for object in objects {
        server.add(object);
    }
    server
}

/// With a bound claim, its volume, and a driver that mounts with a label.
fn with_volume(objects: &[ObjectBuilder]) -> Server {
    server(&[&[claim(), volume(), driver(true)], objects].concat())
}

async fn start(server: &Server) -> Running {
    start_at_rest::<SelinuxWarningOperator>(server, &[]).await
}

/// The events so far that have this reason.
fn told(server: &Server, reason: &str) -> usize {
    server.events().iter().filter(|event| event.contains(reason)).count()
}

/// The requests so far that post an event, or count one up.
fn posted(server: &Server) -> usize {
    server.count("create events") + server.count("patch events")
}

#[test]
fn no_object_is_written_in_its_life_or_after_a_restart() {
    test(async {
        let life = [
            Do(|server| {
                server.serve(CSI_DRIVERS);
                for object in [claim(), volume(), driver(true), user("web", "s0:c1"), user("other", "s0:c2")] {
                    server.add(&object);
                }
            }),
            Do(|server| server.delete("pods", "default/other")),
            Pass(Duration::from_mins(1)),
        ];
        let server = survives_kills::<SelinuxWarningOperator>(&[], &life).await;
        assert_eq!((server.writes(), told(&server, "SELinuxLabelConflict")), (Vec::new(), 2));
    });
}

#[test]
fn two_pods_are_told_once_and_again_when_one_comes_back() {
    test(async {
        let server = with_volume(&[user("web", "s0:c1"), user("other", "s0:c2")]);
        let running = start(&server).await;
        assert_eq!((told(&server, "SELinuxLabelConflict"), posted(&server)), (2, 2));
        server.change("pods", WEB, |pod| pod["metadata"]["labels"] = json!({ "a": "b" }));
        running.pass(Duration::from_mins(60)).await;
        assert_eq!(posted(&server), 2);
        server.delete("pods", WEB);
        running.at_rest().await;
        server.add(&user("web", "s0:c1").uid_of("another"));
        running.at_rest().await;
        assert_eq!(posted(&server), 4);
    });
}

#[test]
fn a_pod_that_has_ended_is_forgotten() {
    test(async {
        let server = with_volume(&[user("web", "s0:c1")]);
        let running = start(&server).await;
        server.change("pods", WEB, |pod| pod["status"]["phase"] = json!("Succeeded"));
        running.at_rest().await;
        server.add(&user("other", "s0:c2"));
        running.at_rest().await;
        assert_eq!(server.events(), Vec::<String>::new());
    });
}

#[test]
fn a_conflict_is_found_when_the_claim_is_bound_and_when_the_driver_begins_to_mount_with_a_label() {
    test(async {
        let waiting = claim().set(&["status", "phase"], "Pending");
        let server = server(&[waiting, volume(), driver(false), user("web", "s0:c1"), user("other", "s0:c2")]);
        let running = start(&server).await;
        server.change("persistentvolumeclaims", "default/data", |claim| claim["status"]["phase"] = json!("Bound"));
        running.at_rest().await;
        assert_eq!(server.events(), Vec::<String>::new());
        server.change("csidrivers", "d", |driver| driver["spec"]["seLinuxMount"] = json!(true));
        running.at_rest().await;
        // The first one that is synced differs in both properties, the second one only in its label.
        assert_eq!(posted(&server), 6);
    });
}

#[test]
fn containers_with_several_labels_are_told_again_and_again() {
    test(async {
        let container = |level: &str| {
            json!({ "name": level, "volumeMounts": [{ "name": "data" }],
                "securityContext": { "seLinuxOptions": { "level": level } } })
        };
        let mixed = mounting(pod("web"), "", &json!({ "name": "data", "emptyDir": {} }));
        let server = server(&[mixed.set(&["spec", "containers"], json!([container("a"), container("b")]))]);
        let running = start(&server).await;
        assert_eq!((told(&server, "MultipleSELinuxLabels"), posted(&server)), (1, 1));
        running.pass(Duration::from_secs(3500)).await;
        assert_eq!(posted(&server), 4);
    });
}

#[test]
fn an_idle_cluster_is_asked_for_pods_only() {
    test(async {
        let plain =
            mounting(pod("web"), "", &json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }));
        let server = with_volume(&[plain]);
        let running = start(&server).await;
        running.pass(Duration::from_mins(10)).await;
        for resource in ["persistentvolumeclaims", "persistentvolumes", "csidrivers"] {
            assert_eq!(server.count(&format!("list {resource}")), 0, "{resource}");
        }
        assert_eq!(posted(&server), 0);
    });
}

#[test]
fn claims_volumes_and_drivers_are_followed_while_a_pod_has_a_label() {
    test(async {
        for resource in ["persistentvolumeclaims", "persistentvolumes", "csidrivers"] {
            let (add, remove) =
                (|server: &Server| server.add(&iscsi("web", "s0")), |server: &Server| server.delete("pods", WEB));
            is_followed_only_while_needed::<SelinuxWarningOperator>(&server(&[]), resource, add, remove).await;
        }
    });
}

#[test]
fn no_pod_is_judged_before_its_claim_is_known() {
    for resource in ["persistentvolumeclaims", "persistentvolumes"] {
        let first = |server: &Server| {
            server.serve(CSI_DRIVERS);
            for object in [claim(), volume(), user("web", "s0:c1"), user("other", "s0:c2")] {
                server.add(&object);
            }
        };
        let then = |server: &Server| assert!(server.events().is_empty(), "there is no driver: {:?}", server.events());
        test(the_first_one_waits::<SelinuxWarningOperator>(&[], resource, first, then));
    }
}

#[test]
fn a_standby_tells_nothing_and_its_successor_tells_all_again() {
    test(async {
        let server = with_volume(&[user("web", "s0:c1"), user("other", "s0:c2")]);
        drop(start(&server).await);
        assert_eq!(told(&server, "SELinuxLabelConflict"), 2);
        start(&server).await;
        assert_eq!(told(&server, "SELinuxLabelConflict"), 4);
    });
}

#[test]
fn why_names_the_pod_that_excludes_this_one() {
    test(async {
        let server = with_volume(&[user("web", "s0:c1"), user("other", "s0:c2"), pod("plain")]);
        let running = start(&server).await;
        let now = || running.why(PATH).keys[0].now.clone();
        assert_eq!(now()[0].text, "nothing (conflicts with SELinuxLabel \":::s0:c2\" of pod other)");
        assert_eq!(now()[0].reason, json!({ "found": { "conflicts": ["SELinuxLabel \":::s0:c2\" of pod other"] } }));
        server.delete("pods", "default/other");
        running.at_rest().await;
        assert_eq!(now()[0].text, "nothing (no conflict)");
        server.delete("pods", WEB);
        running.at_rest().await;
        assert!(running.why("/api/v1/namespaces/default/pods/plain").keys[0].now.is_empty());
    });
}
