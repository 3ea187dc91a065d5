//! Pods, claims, volumes and nodes that come, change and go.

use persistentvolume_attach_detach_operator::controller::PersistentVolumeAttachDetachOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{survives_kills, test};
use shared::testing::uid;

use crate::world::{
    ATTACHMENTS, CREATE, DELETE, MINUTE, add_many, attached, attachment, claim, node, persistent_volume, pod, reported,
    run_attacher, settle, start, uses,
};

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add_many(server, &["worker-0", "worker-1"], &["data", "logs"]);
                server.add(&pod("web", "data", "worker-0"));
                server.add(&pod("log", "logs", "worker-0"));
            }),
            Do(run_attacher),
            Do(|server| uses(server, "worker-0", &["data", "logs"])),
            Do(|server| {
                server.delete("pods", "default/web");
                server.add(&pod("next", "data", "worker-1"));
            }),
            Do(|server| uses(server, "worker-0", &["logs"])),
            Do(run_attacher),
            Do(run_attacher),
            Do(|server| server.delete("nodes", "worker-0")),
            Do(|server| server.delete("pods", "default/log")),
            // A process that is killed at the end of the six minutes leaves another six to the next one.
            Pass(MINUTE * 20),
            Do(run_attacher),
            Do(run_attacher),
        ];
        let server = survives_kills::<PersistentVolumeAttachDetachOperator>(&[], &life).await;
        assert_eq!(server.keys(ATTACHMENTS), [attachment("data", "worker-1")]);
        assert_eq!(reported(&server, "worker-1"), ["data"]);
    });
}

/// Upstream: `TestFindAndAddActivePods_FindAndRemoveDeletedPods` and the rows about terminated pods of its controller.
#[test]
fn a_pod_that_has_ended_needs_its_volume_no_more() {
    for end in [
        json!({ "status": { "phase": "Succeeded" } }),
        json!({ "status": { "phase": "Failed" } }),
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T12:00:00Z", "deletionGracePeriodSeconds": 30 },
                "status": { "containerStatuses": [{ "state": { "terminated": {} } }],
                            "initContainerStatuses": [{ "state": { "waiting": {} } }] } }),
    ] {
        test(async {
            let server = Server::new();
            let running = attached(&server, &["worker-0"], &[]).await;
            server.change("pods", "default/web", |pod| {
                for part in ["metadata", "status"] {
                    for (field, value) in end[part].as_object().into_iter().flatten() {
                        pod[part][field] = value.clone();
                    }
                }
            });
            settle(&server, &running).await;
            assert_eq!((server.keys(ATTACHMENTS), reported(&server, "worker-0")), (vec![], vec![]), "{end}");
        });
    }
}

#[test]
fn a_pod_whose_container_still_runs_keeps_its_volume_while_it_is_being_deleted() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        server.change("pods", "default/web", |pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
            pod["status"]["containerStatuses"] =
                json!([{ "state": { "running": {} } }, { "state": { "terminated": {} } }]);
        });
        running.at_rest().await;
        assert_eq!((server.count(DELETE), reported(&server, "worker-0")), (0, vec!["data".to_owned()]));
    });
}

#[test]
fn a_claim_that_is_bound_later_gets_its_volume_attached_then() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        server.add(&claim("data").phase("Pending"));
        server.add(&pod("web", "data", "worker-0"));
        let running = start(&server).await;
        server.add(&persistent_volume("data"));
        running.at_rest().await;
        assert_eq!(server.count(CREATE), 0);
        server.change("persistentvolumeclaims", "default/data", |claim| claim["status"]["phase"] = json!("Bound"));
        settle(&server, &running).await;
        assert_eq!(reported(&server, "worker-0"), ["data"]);
    });
}

#[test]
fn a_volume_that_is_for_another_claim_is_not_attached() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        server.add(&persistent_volume("data").set(&["spec", "claimRef", "uid"], uid("another").to_string()));
        server.add(&claim("data"));
        server.add(&pod("web", "data", "worker-0"));
        start(&server).await;
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}

#[test]
fn an_ephemeral_volume_needs_a_claim_of_its_own_pod() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        server.add(&persistent_volume("web-data"));
        server.add(&claim("web-data"));
        let volumes = json!([{ "name": "data", "ephemeral": { "volumeClaimTemplate": {} } }]);
        server.add(&pod("web", "", "worker-0").set(&["spec", "volumes"], volumes));
        let running = start(&server).await;
        assert_eq!(server.writes(), Vec::<String>::new());
        let owner = json!([{ "kind": "Pod", "name": "web", "uid": uid("web").to_string(), "controller": true }]);
        server.delete("persistentvolumeclaims", "default/web-data");
        server.add(&claim("web-data").set(&["metadata", "ownerReferences"], owner));
        settle(&server, &running).await;
        assert_eq!(reported(&server, "worker-0"), ["web-data"]);
    });
}

/// Upstream: `Test_AddPod_Negative_NewPodNodeDoesntExistVolumeDoesntExist` and `Test_AddNode_Positive_NewNode`.
#[test]
fn only_nodes_that_leave_attaching_to_the_control_plane_get_volumes() {
    test(async {
        let server = Server::new();
        add_many(&server, &[], &["data"]);
        server.add(&node("worker-0").set(&["metadata", "annotations"], json!({})));
        server.add(&pod("web", "data", "worker-0"));
        let running = start(&server).await;
        assert_eq!(server.writes(), Vec::<String>::new());
        let managed = json!({ "volumes.kubernetes.io/controller-managed-attach-detach": "false" });
        server.change("nodes", "worker-0", |node| node["metadata"]["annotations"] = managed);
        settle(&server, &running).await;
        assert_eq!(reported(&server, "worker-0"), ["data"]);
    });
}

#[test]
fn a_volume_stays_for_a_pod_whose_claim_or_node_or_annotation_is_gone() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        server.change("nodes", "worker-0", |node| node["metadata"]["annotations"] = json!({}));
        running.pass(MINUTE * 7).await;
        server.delete("persistentvolumeclaims", "default/data");
        running.pass(MINUTE * 7).await;
        server.delete("nodes", "worker-0");
        running.pass(MINUTE * 7).await;
        assert_eq!((server.count(DELETE), server.keys(ATTACHMENTS).len()), (0, 1));
    });
}

/// Upstream: `Test_DeleteNode_Negative_NodeExistsHasChildVolumes`, and issues 37586 and 37777 there.
#[test]
fn a_new_node_of_the_same_name_reports_its_volumes_again() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        server.delete("nodes", "worker-0");
        running.at_rest().await;
        server.add(&node("worker-0").uid_of("another"));
        running.at_rest().await;
        assert_eq!((server.count(CREATE), server.count(DELETE)), (1, 0));
        assert_eq!(reported(&server, "worker-0"), ["data"]);
        // A kubelet that registers again drops the list.
        server.change("nodes", "worker-0", |node| node["status"]["volumesAttached"] = json!(null));
        running.at_rest().await;
        assert_eq!(reported(&server, "worker-0"), ["data"]);
    });
}

#[test]
fn a_node_that_is_gone_keeps_its_volumes_for_a_while() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0", "worker-1"], &[]).await;
        uses(&server, "worker-0", &["data"]);
        server.delete("nodes", "worker-0");
        server.delete("pods", "default/web");
        server.add(&pod("next", "data", "worker-1"));
        running.pass(MINUTE / 60 * 359).await;
        assert_eq!((server.count(CREATE), server.count(DELETE)), (1, 0));
        running.pass(MINUTE / 60 * 2).await;
        settle(&server, &running).await;
        assert_eq!((server.count(CREATE), server.count(DELETE)), (2, 1));
        assert_eq!(reported(&server, "worker-1"), ["data"]);
    });
}

/// Upstream: `nodeDelete`.
#[test]
fn a_volume_that_a_deleted_node_did_not_use_is_detached_at_once_and_without_force() {
    test(async {
        let server = Server::new();
        let flags = ["--disable-force-detach-on-timeout"];
        let running = attached(&server, &["worker-0", "worker-1"], &flags).await;
        uses(&server, "worker-0", &["data"]);
        uses(&server, "worker-0", &[]);
        server.delete("nodes", "worker-0");
        server.delete("pods", "default/web");
        server.add(&pod("next", "data", "worker-1"));
        settle(&server, &running).await;
        assert_eq!((server.count(CREATE), server.count(DELETE)), (2, 1));
        assert_eq!(reported(&server, "worker-1"), ["data"]);
    });
}

/// The node begins to use the volume and goes, and only a list shows that it is gone.
fn use_and_go_unseen(server: &Server) {
    server.hold_watches("nodes");
    uses(server, "worker-0", &["data"]);
    server.delete("nodes", "worker-0");
    server.expire_watches("nodes");
    server.release_watches("nodes");
}

#[test]
fn a_node_whose_last_state_nobody_saw_may_have_used_its_volumes() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0", "worker-1"], &[]).await;
        use_and_go_unseen(&server);
        server.delete("pods", "default/web");
        running.pass(MINUTE / 60 * 359).await;
        assert_eq!(server.count(DELETE), 0);
        running.pass(MINUTE / 60 * 2).await;
        assert_eq!(server.count(DELETE), 1);
    });
}

#[test]
fn a_node_that_comes_back_and_goes_again_is_known_by_its_last_state_alone() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0", "worker-1"], &[]).await;
        server.delete("nodes", "worker-0");
        running.at_rest().await;
        server.add(&node("worker-0"));
        running.at_rest().await;
        use_and_go_unseen(&server);
        server.delete("pods", "default/web");
        running.pass(MINUTE / 60 * 359).await;
        assert_eq!(server.count(DELETE), 0);
    });
}

#[test]
fn only_namespaces_with_volumes_that_can_be_attached_are_followed() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        let local = persistent_volume("local").set(&["spec", "csi"], json!(null)).set(&["spec", "local"], json!({}));
        server.add(&local);
        server.add(&claim("local"));
        server.add(&pod("web", "local", "worker-0"));
        let running = start(&server).await;
        assert_eq!((server.count("list pods"), server.count("list persistentvolumeclaims")), (0, 0));
        server.add(&persistent_volume("data"));
        running.at_rest().await;
        assert_eq!((server.count("list pods"), server.count("list persistentvolumeclaims")), (1, 1));
    });
}

#[test]
fn why_says_for_which_node_a_pod_waits() {
    test(async {
        let server = Server::new();
        add_many(&server, &["worker-0", "worker-1"], &["data", "logs"]);
        server.add(&pod("web", "data", "worker-0"));
        let volumes = json!([
            { "name": "logs", "persistentVolumeClaim": { "claimName": "logs" } },
            { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
        ]);
        let running = start(&server).await;
        settle(&server, &running).await;
        server.add(&pod("next", "", "worker-1").set(&["spec", "volumes"], volumes));
        settle(&server, &running).await;
        let why = |path: &str| running.why(path).keys[0].now[0].clone();
        let next = why("/api/v1/namespaces/default/pods/next");
        let expected = "worker-0: nothing (attached for default/web), worker-1: nothing (for one node only, and worker-0 \
                        has it for default/web)";
        assert_eq!(next.text, expected);
        let elsewhere = json!({ "usedElsewhere": { "nodes": ["worker-0"], "pods": ["default/web"] } });
        assert_eq!(next.reason["nodes"][1], json!(["worker-1", elsewhere]));
        assert_eq!(why("/api/v1/persistentvolumes/data").text, expected);
        let path = format!("/apis/storage.k8s.io/v1/volumeattachments/{}", attachment("data", "worker-0"));
        assert_eq!(why(&path).text, expected);
        assert_eq!(why("/api/v1/nodes/worker-0").text, "nothing (reports the volumes that it has: 1)");
        uses(&server, "worker-0", &["data"]);
        server.delete("pods", "default/web");
        running.at_rest().await;
        let expected = "worker-0: nothing (no pod needs it, and the node has it mounted), worker-1: nothing (for one node \
                        only, and worker-0 has it)";
        assert_eq!(why("/api/v1/namespaces/default/pods/next").text, expected);
    });
}
