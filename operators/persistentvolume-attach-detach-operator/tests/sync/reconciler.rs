//! Upstream's cases of the reconciler, as lives: `pkg/controller/volume/attachdetach/reconciler/reconciler_test.go`.

use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::test;

use crate::world::{
    ATTACHMENTS, CREATE, DELETE, MINUTE, add_many, add_volume, attached, attached_to, attachment, node,
    persistent_volume, pod, put_out_of_service, reported, run_attacher, set_ready, settle, start, uses,
};

/// Attach and detach calls so far.
fn calls(server: &Server) -> (usize, usize) {
    (server.count(CREATE), server.count(DELETE))
}

/// Upstream: `Test_Run_Positive_DoNothing`.
#[test]
fn without_pods_nothing_is_attached() {
    test(async {
        let server = Server::new();
        add_many(&server, &["worker-0"], &["data"]);
        start(&server).await;
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}

/// Upstream: `Test_Run_Positive_OneDesiredVolumeAttach`.
#[test]
fn a_pods_volume_is_attached_and_its_pod_told() {
    test(async {
        let server = Server::new();
        drop(attached(&server, &["worker-0"], &[]).await);
        assert_eq!((calls(&server), reported(&server, "worker-0")), ((1, 0), vec!["data".to_owned()]));
        let made = server.get(ATTACHMENTS, &attachment("data", "worker-0")).unwrap();
        let spec = json!({
            "attacher": "csi.example.com",
            "nodeName": "worker-0",
            "source": { "persistentVolumeName": "data" },
        });
        assert_eq!(made["spec"], spec);
        let message = "Normal SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume \"data\" ";
        assert_eq!(server.events(), [message]);
    });
}

/// Upstream: `Test_Run_Positive_OneDesiredVolumeAttachThenDetachWithUnmountedVolume`.
#[test]
fn an_unmounted_volume_is_detached() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        server.delete("pods", "default/web");
        settle(&server, &running).await;
        assert_eq!((calls(&server), server.keys(ATTACHMENTS)), ((1, 1), vec![]));
        let writes = server.writes();
        let place = |start: &str| writes.iter().rposition(|write| write.starts_with(start));
        assert!(place("patch nodes/status worker-0") < place(DELETE), "{writes:?}");
        assert_eq!(reported(&server, "worker-0"), Vec::<String>::new());
    });
}

/// Upstream: `Test_Run_Positive_OneDesiredVolumeAttachThenDetachWithMountedVolume`. There the node does not exist, so it is
/// not healthy.
#[test]
fn a_mounted_volume_is_detached_by_force_when_its_node_had_its_time() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        uses(&server, "worker-0", &["data"]);
        set_ready(&server, "worker-0", "Unknown");
        server.delete("pods", "default/web");
        running.pass(MINUTE / 60 * 359).await;
        assert_eq!((calls(&server), reported(&server, "worker-0")), ((1, 0), vec!["data".to_owned()]));
        running.pass(MINUTE / 60 * 2).await;
        assert_eq!((calls(&server), reported(&server, "worker-0")), ((1, 1), vec![]));
        assert_eq!(server.count("get nodes"), 0, "what is forced is not verified");
    });
}

/// Upstream: `Test_Run_Negative_OneDesiredVolumeAttachThenDetachWithUnmountedVolumeUpdateStatusFail` and
/// `Test_Run_UpdateNodeStatusFailBeforeOneVolumeDetachNodeWithReadWriteOnce`.
#[test]
fn nothing_is_detached_while_the_status_of_its_node_cannot_be_written() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        let refusal = server.on("patch", "nodes/status").answer(500, "InternalError", "failed calling webhook");
        server.delete("pods", "default/web");
        running.pass(MINUTE).await;
        assert_eq!((calls(&server), reported(&server, "worker-0")), ((1, 0), vec!["data".to_owned()]));
        assert!(refusal.count() > 1);
        // As with upstream's, the pod may come back meanwhile.
        server.add(&pod("web", "data", "worker-0"));
        running.pass(MINUTE).await;
        assert_eq!((calls(&server), reported(&server, "worker-0")), ((1, 0), vec!["data".to_owned()]));
    });
}

/// Upstream: `Test_Run_OneVolumeAttachAndDetachMultipleNodesWithReadWriteMany`.
#[test]
fn a_volume_for_many_nodes_is_attached_to_each_and_detached_from_each() {
    test(async {
        let server = Server::new();
        let (nodes, modes) = (["worker-0", "worker-1"], &["spec", "accessModes"]);
        for name in nodes {
            server.add(&node(name));
        }
        add_volume(&server, &persistent_volume("data").set(modes, json!(["ReadWriteMany"])));
        server.add(&pod("a", "data", "worker-0"));
        server.add(&pod("b", "data", "worker-1"));
        let running = start(&server).await;
        settle(&server, &running).await;
        assert_eq!(calls(&server), (2, 0));
        server.delete("pods", "default/a");
        settle(&server, &running).await;
        assert_eq!((calls(&server), attached_to(&server, "data", &nodes)), ((2, 1), vec!["worker-1".to_owned()]));
        server.delete("pods", "default/b");
        settle(&server, &running).await;
        assert_eq!((calls(&server), attached_to(&server, "data", &nodes)), ((2, 2), vec![]));
    });
}

/// Upstream: `Test_Run_OneVolumeAttachAndDetachMultipleNodesWithReadWriteOnce`.
#[test]
fn a_volume_for_one_node_goes_to_the_second_after_it_left_the_first() {
    test(async {
        let server = Server::new();
        let nodes = ["worker-0", "worker-1"];
        add_many(&server, &nodes, &["data"]);
        server.add(&pod("a", "data", "worker-0"));
        server.add(&pod("b", "data", "worker-1"));
        let running = start(&server).await;
        settle(&server, &running).await;
        assert_eq!((calls(&server), attached_to(&server, "data", &nodes)), ((1, 0), vec!["worker-0".to_owned()]));
        server.delete("pods", "default/a");
        settle(&server, &running).await;
        assert_eq!((calls(&server), attached_to(&server, "data", &nodes)), ((2, 1), vec!["worker-1".to_owned()]));
        assert_eq!([reported(&server, "worker-0"), reported(&server, "worker-1")], [vec![], vec!["data".to_owned()]]);
    });
}

/// Upstream: `Test_Run_OneVolumeAttachAndDetachUncertainNodesWithReadWriteOnce` and
/// `Test_Run_OneVolumeAttachAndDetachTimeoutNodesWithReadWriteOnce`: the attacher does not answer, and the pod goes.
#[test]
fn an_attach_without_an_answer_is_undone_before_another_node_gets_the_volume() {
    test(async {
        let server = Server::new();
        let nodes = ["uncertain", "worker-1"];
        add_many(&server, &nodes, &["data"]);
        server.add(&pod("a", "data", "uncertain"));
        let running = start(&server).await;
        running.pass(MINUTE * 2).await;
        let late = "Warning FailedAttachVolume: AttachVolume.Attach failed for volume \"data\" : timed out waiting for \
                    external-attacher of csi.example.com CSI driver to attach volume data";
        assert_eq!(server.events(), [late]);
        server.delete("pods", "default/a");
        server.add(&pod("b", "data", "worker-1"));
        settle(&server, &running).await;
        assert_eq!((calls(&server), attached_to(&server, "data", &nodes)), ((2, 1), vec!["worker-1".to_owned()]));
    });
}

/// Upstream: `Test_Run_OneVolumeDetachFailNodeWithReadWriteOnce`: the driver cannot detach it, and the pod comes back.
#[test]
fn a_detach_that_failed_keeps_the_volume_from_other_nodes() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        server.add(&node("worker-1"));
        server.delete("pods", "default/web");
        server.add(&pod("next", "data", "worker-1"));
        running.at_rest().await;
        let key = attachment("data", "worker-0");
        let error = json!({ "message": "rpc error: device is busy", "time": "2026-01-01T12:00:00Z" });
        server.change(ATTACHMENTS, &key, |found| found["status"]["detachError"] = error);
        running.pass(MINUTE * 5).await;
        assert_eq!((calls(&server), reported(&server, "worker-0")), ((1, 1), vec![]));
        let refused = "Warning FailedAttachVolume: Multi-Attach error for volume \"data\" Volume is already exclusively \
                       attached to one node and can't be attached to another";
        assert!(server.events().iter().any(|event| event == refused), "{:?}", server.events());
        run_attacher(&server);
        settle(&server, &running).await;
        assert_eq!((calls(&server), reported(&server, "worker-1")), ((2, 1), vec!["data".to_owned()]));
    });
}

/// Upstream: `Test_Run_OneVolumeDetachOnOutOfServiceTaintedNode`.
#[test]
fn a_mounted_volume_is_detached_at_once_from_a_node_that_is_out_of_service() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        uses(&server, "worker-0", &["data"]);
        put_out_of_service(&server, "worker-0");
        server.delete("pods", "default/web");
        settle(&server, &running).await;
        assert_eq!((calls(&server), server.count("get nodes")), ((1, 1), 0));
    });
}

/// Upstream: `Test_Run_OneVolumeDetachOnNoOutOfServiceTaintedNode`.
#[test]
fn a_mounted_volume_stays_on_a_node_that_has_time_left() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        uses(&server, "worker-0", &["data"]);
        set_ready(&server, "worker-0", "False");
        server.delete("pods", "default/web");
        running.pass(MINUTE * 5).await;
        assert_eq!((calls(&server), reported(&server, "worker-0")), ((1, 0), vec!["data".to_owned()]));
    });
}

/// Upstream: `Test_Run_OneVolumeDetachOnUnhealthyNode`.
#[test]
fn a_healthy_node_keeps_what_it_has_mounted_and_an_unhealthy_one_only_for_a_while() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        uses(&server, "worker-0", &["data"]);
        server.delete("pods", "default/web");
        running.pass(MINUTE * 30).await;
        assert_eq!(calls(&server), (1, 0));
        set_ready(&server, "worker-0", "False");
        settle(&server, &running).await;
        assert_eq!(calls(&server), (1, 1));
    });
}

/// Upstream: `Test_Run_OneVolumeDetachOnUnhealthyNodeWithForceDetachOnUnmountDisabled`.
#[test]
fn without_force_only_the_taint_takes_a_mounted_volume_from_a_node() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &["--disable-force-detach-on-timeout"]).await;
        uses(&server, "worker-0", &["data"]);
        set_ready(&server, "worker-0", "False");
        server.delete("pods", "default/web");
        running.pass(MINUTE * 30).await;
        assert_eq!(calls(&server), (1, 0));
        put_out_of_service(&server, "worker-0");
        settle(&server, &running).await;
        assert_eq!(calls(&server), (1, 1));
    });
}

/// Upstream: `Test_GetVolumesToAttach_Positive_TwoNodes`, `Test_GetVolumesToAttach_Positive_TwoNodesOneVolumeEach`,
/// `Test_GetVolumesToAttach_Positive_TwoNodesOneVolumeEachExtraPod`,
/// `Test_GetVolumesToAttach_Positive_TwoNodesThreeVolumes`, `Test_GetPodsOnNodes`,
/// `Test_GetAttachedVolumes_Positive_TwoVolumeTwoNodes`, `Test_GetAttachedVolumesForNode_Positive_TwoVolumeTwoNodes` and
/// `TestNodeStatusUpdater_UpdateNodeStatuses_TwoNodesUpdate`.
#[test]
fn several_volumes_and_nodes_do_not_disturb_each_other() {
    test(async {
        let server = Server::new();
        add_many(&server, &["worker-0", "worker-1"], &["a", "b", "c"]);
        for (name, claim, node) in
            [("0", "a", "worker-0"), ("1", "b", "worker-1"), ("2", "b", "worker-1"), ("3", "c", "worker-0")]
        {
            server.add(&pod(name, claim, node));
        }
        let running = start(&server).await;
        settle(&server, &running).await;
        assert_eq!((calls(&server), reported(&server, "worker-1")), ((3, 0), vec!["b".to_owned()]));
        assert_eq!(reported(&server, "worker-0"), ["a", "c"]);
        server.delete("pods", "default/0");
        server.delete("pods", "default/1");
        settle(&server, &running).await;
        assert_eq!([reported(&server, "worker-0"), reported(&server, "worker-1")], [["c"], ["b"]]);
        assert_eq!(calls(&server), (3, 1));
    });
}

/// Upstream: `TestNodeStatusUpdater_UpdateNodeStatuses_FailureInFirstUpdate`.
#[test]
fn a_status_that_cannot_be_written_is_tried_again_and_delays_no_other_node() {
    test(async {
        let server = Server::new();
        add_many(&server, &["worker-0", "worker-1"], &["a", "b"]);
        server.add(&pod("0", "a", "worker-0"));
        server.add(&pod("1", "b", "worker-1"));
        let running = start(&server).await;
        server.on("patch", "nodes/status").once().answer(500, "InternalError", "failed calling webhook");
        settle(&server, &running).await;
        assert_eq!([reported(&server, "worker-0"), reported(&server, "worker-1")], [["a"], ["b"]]);
    });
}

/// Upstream: `TestPodDelete_Tombstone`: a deletion that no event has shown.
#[test]
fn a_pod_that_went_while_nobody_watched_needs_its_volume_no_more() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        server.hold_watches("pods");
        server.delete("pods", "default/web");
        server.expire_watches("pods");
        server.release_watches("pods");
        settle(&server, &running).await;
        assert_eq!((calls(&server), server.keys(ATTACHMENTS)), ((1, 1), vec![]));
    });
}
