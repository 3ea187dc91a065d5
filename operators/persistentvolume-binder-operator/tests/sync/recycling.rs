//! Volumes are emptied by pods: what is in their way, and what happens meanwhile.

use std::time::Duration;

use persistentvolume_binder_operator::controller::PersistentVolumeBinderOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod, uid};

use crate::world::{CLAIMS, DATA, VOLUMES, at, claim, phases, start, volume};

const PODS: &str = "pods";
const RECYCLER: &str = "default/recycler-for-small";
const CREATE: &str = "create pods";

/// A volume whose claim is gone, as the cluster knows already.
fn released() -> ObjectBuilder {
    let reference = json!({ "namespace": "default", "name": "data", "uid": uid("gone") });
    volume("small", "1Gi", "Recycle").set(&["spec", "claimRef"], reference).phase("Released")
}

/// Scheduler and kubelet run what waits and end it in this phase, and what is being deleted is gone.
fn end_recyclers(server: &Server, phase: &str) {
    server.run_pods();
    server.end_pods(phase);
    server.run_pods();
}

fn has_event(server: &Server, event: &str) -> bool {
    server.events().iter().any(|told| told == event)
}

fn phase(server: &Server) -> Value {
    at(server, VOLUMES, "small", "/status/phase")
}

#[test]
fn a_pod_empties_a_volume_before_another_claim_gets_it() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "3Gi", "Recycle").phase("Available"));
        server.add(&claim("data", "1Gi"));
        let running = start(&server).await;
        let before = server.writes().len();
        server.delete(CLAIMS, DATA);
        server.add(&claim("next", "1Gi"));
        running.at_rest().await;
        let spec = at(&server, PODS, RECYCLER, "/spec");
        assert_eq!((&spec["activeDeadlineSeconds"], &spec["restartPolicy"]), (&json!(90), &json!("Never")));
        let path = "/tmp/persistentvolume-binder-operator/small";
        assert_eq!(spec["volumes"], json!([{ "name": "vol", "hostPath": { "path": path } }]));
        let pod = at(&server, PODS, RECYCLER, "/metadata/uid");
        let involved = json!({ "kind": "Pod", "namespace": "default", "name": "recycler-for-small", "uid": pod });
        let told = object("v1", "Event", "recycler-for-small.1").set(&["involvedObject"], involved);
        let told = told.set(&["type"], "Normal").set(&["reason"], "Pulling").set(&["message"], "Pulling image \"a\"");
        server.add(&told);
        running.at_rest().await;
        assert!(has_event(&server, "Normal RecyclerPod: Recycler pod: Pulling image \"a\""), "{:?}", server.events());
        running.pass(Duration::from_mins(2)).await;
        assert_eq!((phase(&server), server.keys(PODS)), (json!("Released"), vec![RECYCLER.to_owned()]));
        assert_eq!(
            running.now("/api/v1/persistentvolumes/small"),
            [format!("check again (pod {RECYCLER} empties it)")]
        );
        end_recyclers(&server, "Succeeded");
        running.pass(Duration::from_secs(1)).await;
        let writes = server.writes().split_off(before);
        let of_recycling = [
            "patch persistentvolumes/status small",
            "create pods default/recycler-for-small",
            "delete pods default/recycler-for-small",
            "patch persistentvolumes small",
            "patch persistentvolumes/status small",
        ];
        let writes: Vec<_> = writes.iter().filter(|write| !write.contains(CLAIMS)).collect();
        assert_eq!(writes[..5], of_recycling);
        assert!(has_event(&server, "Normal VolumeRecycled: Volume recycled"), "{:?}", server.events());
        assert_eq!(
            (server.keys(PODS).len(), phases(&server, "default/next", "small")),
            (0, (json!("Bound"), json!("Bound")))
        );
    });
}

#[test]
fn survives_a_kill_before_any_write_of_a_recycling() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&volume("small", "1Gi", "Recycle"));
                server.add(&claim("data", "1Gi"));
            }),
            Do(|server| server.delete(CLAIMS, DATA)),
            Pass(Duration::from_mins(1)),
            Do(|server| end_recyclers(server, "Failed")),
            Pass(Duration::from_mins(1)),
            Do(|server| end_recyclers(server, "Succeeded")),
            Pass(Duration::from_mins(1)),
            Do(|server| end_recyclers(server, "Succeeded")),
            Pass(Duration::from_mins(1)),
            Do(|server| end_recyclers(server, "Succeeded")),
            Pass(Duration::from_mins(1)),
        ];
        let server = survives_kills::<PersistentVolumeBinderOperator>(&[], &life).await;
        assert_eq!((phase(&server), server.keys(PODS)), (json!("Available"), Vec::new()));
        assert_eq!(at(&server, VOLUMES, "small", "/spec/claimRef"), Value::Null);
    });
}

#[test]
fn a_volume_that_pods_use_is_not_given_up_before_they_end() {
    test(async {
        let server = Server::new();
        server.add(&volume("small", "1Gi", "Recycle").phase("Available"));
        server.add(&claim("data", "1Gi"));
        let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        server.add(&pod("web").set(&["spec", "volumes"], volumes));
        let running = start(&server).await;
        server.delete(CLAIMS, DATA);
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((phase(&server), server.count(CREATE)), (json!("Released"), 0));
        let used = "Normal VolumeFailedRecycle: Volume is used by pods: default/web";
        assert!(has_event(&server, used), "{:?}", server.events());
        server.change(PODS, "default/web", |pod| pod["status"]["phase"] = json!("Succeeded"));
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(server.count(CREATE), 1);
    });
}

/// Upstream: 6-4 of `TestRecycleSync`.
#[test]
fn a_pod_that_is_refused_fails_the_volume_until_one_is_made() {
    test(async {
        let server = Server::new();
        server.add(&released());
        let refused = server.on("create", PODS).answer(403, "Forbidden", "exceeded quota");
        let running = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(phase(&server), "Failed");
        let why = at(&server, VOLUMES, "small", "/status/message").as_str().unwrap().to_owned();
        assert!(why.starts_with("Recycle failed: unexpected error creating recycler pod:  "), "{why}");
        assert!(why.ends_with("exceeded quota"), "{why}");
        assert!(has_event(&server, &format!("Warning VolumeFailedRecycle: {why}")), "{:?}", server.events());
        assert!(refused.count() > 1);
        refused.times(0);
        running.pass(Duration::from_mins(1)).await;
        end_recyclers(&server, "Succeeded");
        running.pass(Duration::from_secs(1)).await;
        assert_eq!((phase(&server), server.keys(PODS).len()), (json!("Available"), 0));
    });
}

#[test]
fn a_pod_that_fails_is_made_again_after_the_sync_period() {
    test(async {
        let server = Server::new();
        server.add(&released());
        let running = start(&server).await;
        for _ in 0..60 {
            end_recyclers(&server, "Failed");
            running.pass(Duration::from_secs(1)).await;
        }
        assert_eq!(phase(&server), "Failed");
        let pods = server.count(CREATE);
        assert!((4..=6).contains(&pods), "{pods}");
    });
}

#[test]
fn a_pod_whose_creation_is_not_known_of_is_not_believed() {
    test(async {
        let server = Server::new();
        server.add(&released());
        server.on("create", PODS).once().lose();
        let running = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
        running.pass(Duration::from_millis(500)).await;
        server.end_pods("Succeeded");
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((server.count(CREATE), server.count("delete pods")), (2, 1));
        assert_eq!(phase(&server), "Failed");
        end_recyclers(&server, "Succeeded");
        running.pass(Duration::from_secs(1)).await;
        assert_eq!((phase(&server), server.keys(PODS).len()), (json!("Available"), 0));
    });
}

#[test]
fn a_pod_that_somebody_has_made_shows_nothing() {
    test(async {
        let server = Server::new();
        server.add(&pod("recycler-for-small").phase("Succeeded"));
        server.add(&released());
        let running = start(&server).await;
        let old = "Warning VolumeFailedRecycle: Recycle failed: old recycler pod found, will retry later";
        assert!(has_event(&server, old), "{:?}", server.events());
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((server.count(CREATE), phase(&server)), (1, json!("Failed")));
    });
}

#[test]
fn a_pod_that_is_deleted_has_emptied_nothing() {
    test(async {
        let server = Server::new();
        server.add(&released());
        let running = start(&server).await;
        server.delete(PODS, RECYCLER);
        running.pass(Duration::from_secs(1)).await;
        let deleted = "Recycle failed: failed to recycle volume: recycler pod was deleted";
        assert_eq!(at(&server, VOLUMES, "small", "/status/message"), deleted);
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((server.count(CREATE), phase(&server)), (2, json!("Failed")));
    });
}

#[test]
fn a_pod_in_the_place_of_the_own_one_shows_nothing_and_is_deleted() {
    test(async {
        let server = Server::new();
        server.add(&released());
        let running = start(&server).await;
        server.delete(PODS, RECYCLER);
        server.add(&pod("recycler-for-small").phase("Succeeded"));
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((server.count(CREATE), phase(&server)), (2, json!("Failed")));
        end_recyclers(&server, "Succeeded");
        running.pass(Duration::from_secs(1)).await;
        assert_eq!((phase(&server), server.keys(PODS).len()), (json!("Available"), 0));
    });
}

/// Upstream: 6-6, 6-7 and 6-8 of `TestRecycleSync`.
#[test]
fn a_volume_is_not_emptied_by_a_cache_that_is_behind() {
    test(async {
        let changes: [fn(&Server); 4] = [
            |server| server.delete(VOLUMES, "small"),
            |server| {
                server.change(VOLUMES, "small", |volume| volume["spec"]["claimRef"] = Value::Null);
            },
            |server| {
                server.change(VOLUMES, "small", |volume| {
                    volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
                });
            },
            |server| {
                server.hold_watches(CLAIMS);
                server.add(&claim("data", "1Gi").uid_of("gone"));
            },
        ];
        for change in changes {
            let server = Server::new();
            let running = start(&server).await;
            server.add(&released());
            let read = server.on("get", CLAIMS).once().hold();
            read.arrived().await;
            server.hold_watches(VOLUMES);
            change(&server);
            read.release();
            running.pass(Duration::from_mins(1)).await;
            assert_eq!(server.count(CREATE), 0);
        }
    });
}

#[test]
fn the_pod_of_a_volume_that_is_deleted_or_retained_is_deleted() {
    test(async {
        let changes: [fn(&Server); 2] = [
            |server| server.delete(VOLUMES, "small"),
            |server| {
                server.change(VOLUMES, "small", |volume| {
                    volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
                });
            },
        ];
        for change in changes {
            let server = Server::new();
            server.add(&released());
            let running = start(&server).await;
            server.run_pods();
            change(&server);
            running.at_rest().await;
            server.run_pods();
            running.pass(Duration::from_mins(10)).await;
            assert_eq!((server.keys(PODS), server.count("delete pods")), (Vec::new(), 1));
        }
    });
}

#[test]
fn a_volume_that_changes_while_it_is_given_back_is_emptied_again() {
    test(async {
        let server = Server::new();
        server.add(&released());
        let running = start(&server).await;
        let conflict = server.on("patch", VOLUMES).once().answer(409, "Conflict", "the object has been modified");
        for _ in 0..2 {
            end_recyclers(&server, "Succeeded");
            running.pass(Duration::from_mins(1)).await;
        }
        assert_eq!((conflict.count(), server.count(CREATE)), (1, 2));
        assert_eq!((phase(&server), server.keys(PODS).len()), (json!("Available"), 0));
    });
}

#[test]
fn two_leaders_empty_a_volume_before_they_give_it_back() {
    test(async {
        let server = Server::new();
        server.add(&released());
        let first = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
        let second = Running::start::<PersistentVolumeBinderOperator>(&server, &[]);
        for _ in 0..30 {
            first.pass(Duration::from_secs(1)).await;
            server.run_pods();
            assert!(phase(&server) != "Available", "no pod has ended");
        }
        drop(first);
        for _ in 0..4 {
            second.pass(Duration::from_mins(1)).await;
            end_recyclers(&server, "Succeeded");
        }
        second.at_rest().await;
        assert_eq!((phase(&server), server.keys(PODS).len()), (json!("Available"), 0));
    });
}

#[test]
fn the_pod_and_its_events_are_followed_only_while_a_volume_is_recycled() {
    test(async {
        let server = Server::new();
        is_followed_only_while_needed::<PersistentVolumeBinderOperator>(
            &server,
            "events default/",
            |server| server.add(&released()),
            |server| {
                server.delete(VOLUMES, "small");
                server.run_pods();
            },
        )
        .await;
        let server = Server::new();
        let running = start(&server).await;
        assert_eq!(server.open_watches(PODS), 0);
        server.add(&released());
        running.at_rest().await;
        assert_eq!(server.open_watches(PODS), 1);
    });
}

#[test]
fn no_pod_is_made_before_the_first_list_of_pods_and_events() {
    test(async {
        for resource in ["events", PODS] {
            let made = |server: &Server| assert_eq!(server.count(CREATE), 1);
            let add = |server: &Server| server.add(&released());
            the_first_one_waits::<PersistentVolumeBinderOperator>(&[], resource, add, made).await;
        }
    });
}
