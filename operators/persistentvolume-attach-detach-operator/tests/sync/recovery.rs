//! What a new process makes of what the former one left, from the objects alone.

use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::object;
use shared::testing::running::test;

use crate::world::{
    ATTACHMENTS, CREATE, DELETE, DRIVER, MINUTE, add_many, attachment, node, pod, reported, set_ready, settle, start,
    uses, volume,
};

/// Adds the VolumeAttachment that a former process made.
fn add_attachment(server: &Server, handle: &str, node: &str, is_attached: bool) {
    let object = object("storage.k8s.io/v1", "VolumeAttachment", &attachment(handle, node))
        .namespace("")
        .set(&["spec", "attacher"], DRIVER)
        .set(&["spec", "nodeName"], node)
        .set(&["spec", "source", "persistentVolumeName"], handle)
        .set(&["status", "attached"], is_attached);
    server.add(&object);
}

/// Writes what a former process has reported of a node.
fn report(server: &Server, node: &str, names: &[String]) {
    let entries: Vec<Value> = names.iter().map(|name| json!({ "name": name, "devicePath": "/dev/sda" })).collect();
    server.change("nodes", node, |node| node["status"]["volumesAttached"] = json!(entries));
}

/// Upstream: `Test_ADC_VolumeAttachmentRecovery`, "VA status is attached" and "VA status is unattached".
#[test]
fn an_attachment_that_no_pod_needs_is_deleted_whether_or_not_it_succeeded() {
    for is_attached in [true, false] {
        test(async {
            let server = Server::new();
            add_many(&server, &["mynode-1"], &["vol1"]);
            add_attachment(&server, "vol1", "mynode-1", is_attached);
            start(&server).await;
            assert_eq!(server.keys(ATTACHMENTS), Vec::<String>::new());
            assert_eq!(server.writes(), [format!("{DELETE} {}", attachment("vol1", "mynode-1"))]);
        });
    }
}

/// Upstream: issue 94912: killed between the attach and the write of the node's status.
#[test]
fn an_attachment_that_was_not_reported_yet_is_reported() {
    test(async {
        let server = Server::new();
        add_many(&server, &["mynode-1"], &["vol1"]);
        add_attachment(&server, "vol1", "mynode-1", true);
        server.add(&pod("web", "vol1", "mynode-1"));
        start(&server).await;
        assert_eq!((server.count(CREATE), server.count(DELETE)), (0, 0));
        assert_eq!(reported(&server, "mynode-1"), ["vol1"]);
        assert_eq!(server.events().len(), 1);
    });
}

/// Upstream: issue 94912, whose pod is gone meanwhile.
#[test]
fn an_attachment_that_was_not_reported_and_that_no_pod_needs_any_more_leaves_room_for_another_node() {
    test(async {
        let server = Server::new();
        add_many(&server, &["mynode-1", "mynode-2"], &["vol1"]);
        add_attachment(&server, "vol1", "mynode-1", true);
        server.add(&pod("next", "vol1", "mynode-2"));
        let running = start(&server).await;
        settle(&server, &running).await;
        let writes = server.writes();
        let (deleted, created) = (
            writes.iter().position(|write| write.starts_with(DELETE)),
            writes.iter().position(|write| write.starts_with(CREATE)),
        );
        assert!(deleted < created && deleted.is_some(), "{writes:?}");
        assert_eq!(reported(&server, "mynode-2"), ["vol1"]);
    });
}

/// Upstream: `Test_AttachDetachControllerRecovery`: volumes that only nodes report are detached, those of pods attached.
#[test]
fn what_only_a_node_reports_is_withdrawn_and_what_pods_need_attached() {
    test(async {
        let server = Server::new();
        add_many(&server, &["mynode-0", "mynode-1"], &["data", "more"]);
        for name in ["mynode-0", "mynode-1"] {
            report(&server, name, &[volume(&format!("lost-{name}")).to_string()]);
        }
        server.add(&pod("web", "data", "mynode-0"));
        let running = start(&server).await;
        server.add(&pod("newpod-1", "more", "mynode-1"));
        settle(&server, &running).await;
        assert_eq!([reported(&server, "mynode-0"), reported(&server, "mynode-1")], [["data"], ["more"]]);
        assert_eq!(server.count(CREATE), 2);
    });
}

/// Upstream: `Test_AttachDetachControllerStateOfWorldPopulators_Positive`.
#[test]
fn what_a_node_reports_and_uses_is_attached_as_it_is() {
    test(async {
        let server = Server::new();
        add_many(&server, &["mynode-1"], &["data"]);
        add_attachment(&server, "data", "mynode-1", true);
        report(&server, "mynode-1", &[volume("data").to_string()]);
        uses(&server, "mynode-1", &["data"]);
        server.add(&pod("web", "data", "mynode-1"));
        start(&server).await;
        assert_eq!((server.writes(), server.events()), (vec![], vec![]));
    });
}

#[test]
fn volumes_of_unknown_plugins_stay_reported_as_they_are() {
    test(async {
        let server = Server::new();
        add_many(&server, &["mynode-1"], &["data"]);
        let foreign = "kubernetes.io/rbd/pool:image".to_owned();
        report(&server, "mynode-1", &[foreign.clone(), volume("gone").to_string()]);
        server.add(&pod("web", "data", "mynode-1"));
        let running = start(&server).await;
        settle(&server, &running).await;
        assert_eq!(reported(&server, "mynode-1"), [foreign, "data".to_owned()]);
        let entry = server.get("nodes", "mynode-1").unwrap()["status"]["volumesAttached"][0].clone();
        assert_eq!(entry, json!({ "name": "kubernetes.io/rbd/pool:image", "devicePath": "/dev/sda" }));
    });
}

#[test]
fn the_volume_of_a_persistent_volume_that_is_gone_is_detached_by_its_name() {
    test(async {
        let server = Server::new();
        server.add(&node("mynode-1"));
        add_attachment(&server, "vol1", "mynode-1", true);
        report(&server, "mynode-1", &[volume("vol1").to_string()]);
        start(&server).await;
        assert_eq!((server.keys(ATTACHMENTS), reported(&server, "mynode-1")), (vec![], vec![]));
    });
}

#[test]
fn a_new_process_gives_a_node_its_whole_time_again() {
    test(async {
        let server = Server::new();
        add_many(&server, &["mynode-1"], &["vol1"]);
        add_attachment(&server, "vol1", "mynode-1", true);
        uses(&server, "mynode-1", &["vol1"]);
        set_ready(&server, "mynode-1", "Unknown");
        let running = start(&server).await;
        running.pass(MINUTE * 5).await;
        drop(running);
        let running = start(&server).await;
        running.pass(MINUTE * 5).await;
        assert_eq!(server.count(DELETE), 0);
        running.pass(MINUTE * 2).await;
        assert_eq!(server.count(DELETE), 1);
    });
}

#[test]
fn no_step_of_the_clock_forces_a_detach() {
    test(async {
        let server = Server::new();
        add_many(&server, &["mynode-1"], &["vol1"]);
        add_attachment(&server, "vol1", "mynode-1", true);
        uses(&server, "mynode-1", &["vol1"]);
        set_ready(&server, "mynode-1", "Unknown");
        let running = start(&server).await;
        server.step_clock(3600);
        set_ready(&server, "mynode-1", "False");
        set_ready(&server, "mynode-1", "Unknown");
        running.pass(MINUTE * 5).await;
        assert_eq!(server.count(DELETE), 0);
        server.step_clock(-7200);
        running.pass(MINUTE * 2).await;
        assert_eq!(server.count(DELETE), 1);
    });
}
