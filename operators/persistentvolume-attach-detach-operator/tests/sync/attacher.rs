//! Answers of the driver's attacher, drivers that need none, and attachments that somebody else changes.

use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::object;
use shared::testing::running::test;

use crate::world::{
    ATTACHMENTS, CREATE, DRIVER, MINUTE, add_many, add_volume, attached, attached_to, attachment, node,
    persistent_volume, pod, reported, run_attacher, settle, start,
};

#[test]
fn each_failure_that_the_driver_reports_is_told_once() {
    test(async {
        let server = Server::new();
        add_many(&server, &["worker-0"], &["data"]);
        server.add(&pod("web", "data", "worker-0"));
        let running = start(&server).await;
        let key = attachment("data", "worker-0");
        for minute in ["00", "01"] {
            let error = json!({ "message": "rpc error: no quota", "time": format!("2026-01-01T12:{minute}:00Z") });
            server.change(ATTACHMENTS, &key, |found| found["status"] = json!({ "attachError": error }));
            running.at_rest().await;
            server.add(&pod("late", "other", "worker-0"));
            running.at_rest().await;
            server.delete("pods", "default/late");
            running.pass(MINUTE * 5).await;
        }
        let told = "Warning FailedAttachVolume: AttachVolume.Attach failed for volume \"data\" : rpc error: no quota";
        assert_eq!((server.events(), server.list("events")[0]["count"].clone()), (vec![told.to_owned()], json!(2)));
        assert_eq!(server.count(CREATE), 1);
        run_attacher(&server);
        running.at_rest().await;
        assert_eq!(reported(&server, "worker-0"), ["data"]);
    });
}

#[test]
fn a_creation_that_is_refused_is_told_and_tried_again() {
    test(async {
        let server = Server::new();
        add_many(&server, &["worker-0"], &["data"]);
        server.on("create", ATTACHMENTS).once().answer(500, "InternalError", "failed calling webhook");
        server.add(&pod("web", "data", "worker-0"));
        let running = start(&server).await;
        settle(&server, &running).await;
        let told = "Warning FailedAttachVolume: AttachVolume.Attach failed for volume \"data\" : kubernetes.io/csi: \
                    attacher.Attach failed: ";
        assert!(server.events()[0].starts_with(told), "{:?}", server.events());
        assert_eq!((server.count(CREATE), reported(&server, "worker-0")), (2, vec!["data".to_owned()]));
    });
}

#[test]
fn a_driver_that_needs_no_attachment_gets_none() {
    test(async {
        let server = Server::new();
        server.add(
            &object("storage.k8s.io/v1", "CSIDriver", DRIVER).namespace("").set(&["spec", "attachRequired"], false),
        );
        add_many(&server, &["worker-0"], &["data"]);
        server.add(&pod("web", "data", "worker-0"));
        start(&server).await;
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}

/// Upstream: `TestFindAndRemoveNonattachableVolumes`, and the opposite.
#[test]
fn a_driver_that_changes_its_mind_is_followed() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        let driver = object("storage.k8s.io/v1", "CSIDriver", DRIVER).namespace("");
        server.add(&driver.set(&["spec", "attachRequired"], false));
        settle(&server, &running).await;
        assert_eq!((server.keys(ATTACHMENTS), reported(&server, "worker-0")), (vec![], vec![]));
        server.change("csidrivers", DRIVER, |driver| driver["spec"]["attachRequired"] = json!(true));
        settle(&server, &running).await;
        assert_eq!(reported(&server, "worker-0"), ["data"]);
    });
}

#[test]
fn an_attachment_that_somebody_deletes_is_made_again_when_it_is_gone() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &["worker-0"], &[]).await;
        server.change(ATTACHMENTS, &attachment("data", "worker-0"), |found| {
            found["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
        });
        running.at_rest().await;
        assert_eq!((server.count(CREATE), reported(&server, "worker-0")), (1, vec![]));
        running.pass(MINUTE * 3).await;
        let told = "Warning FailedAttachVolume: AttachVolume.Attach failed for volume \"data\" : volume attachment is \
                    being deleted";
        assert!(server.events().iter().any(|event| event == told), "{:?}", server.events());
        settle(&server, &running).await;
        assert_eq!((server.count(CREATE), reported(&server, "worker-0")), (2, vec!["data".to_owned()]));
    });
}

#[test]
fn without_verification_what_a_node_reports_is_taken_as_attached() {
    for (flags, expected) in [(&[][..], 2), (&["--disable-attach-detach-reconcile-sync"][..], 1)] {
        test(async {
            let server = Server::new();
            let running = attached(&server, &["worker-0"], flags).await;
            let key = attachment("data", "worker-0");
            server.change(ATTACHMENTS, &key, |found| found["metadata"]["finalizers"] = json!(null));
            server.delete(ATTACHMENTS, &key);
            settle(&server, &running).await;
            assert_eq!((server.count(CREATE), reported(&server, "worker-0")), (expected, vec!["data".to_owned()]));
        });
    }
}

#[test]
fn somebody_elses_attachment_is_never_touched() {
    test(async {
        let server = Server::new();
        add_many(&server, &["worker-0"], &["data"]);
        let foreign = object("storage.k8s.io/v1", "VolumeAttachment", "backup")
            .namespace("")
            .set(&["spec", "nodeName"], "worker-0")
            .set(&["spec", "source", "persistentVolumeName"], "data");
        server.add(&foreign);
        start(&server).await;
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}

/// Fibre channel and iSCSI volumes are attached by their nodes, which need only be allowed to.
#[test]
fn a_volume_that_its_node_attaches_is_reported_at_once_and_on_one_node_only() {
    test(async {
        let server = Server::new();
        let nodes = ["worker-0", "worker-1"];
        for name in nodes {
            server.add(&node(name));
        }
        let target = json!({ "targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 2 });
        let volume = persistent_volume("data").set(&["spec", "csi"], json!(null)).set(&["spec", "iscsi"], target);
        add_volume(&server, &volume);
        server.add(&pod("a", "data", "worker-0"));
        let running = start(&server).await;
        server.add(&pod("b", "data", "worker-1"));
        running.at_rest().await;
        let name = "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001-04.com.example:disk:2";
        assert_eq!([reported(&server, "worker-0"), reported(&server, "worker-1")], [vec![name.to_owned()], vec![]]);
        let told = "Multi-Attach error for volume \"data\" Volume is already used by pod(s) a";
        assert!(server.events().iter().any(|event| event.ends_with(told)), "{:?}", server.events());
        server.delete("pods", "default/a");
        running.at_rest().await;
        assert_eq!([reported(&server, "worker-0"), reported(&server, "worker-1")], [vec![], vec![name.to_owned()]]);
        assert_eq!(attached_to(&server, "data", &nodes), Vec::<String>::new());
    });
}
