//! Volumes of in-tree plugins that CSI drivers have replaced, and volumes that a pod's own spec defines.

use persistentvolume_attach_detach_operator::objects::volume::VolumeName;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::test;

use crate::world::{
    ATTACHMENTS, DELETE, MINUTE, add_volume, node, persistent_volume, pod, reported, set_ready, settle, start,
};

const EBS: &str = "ebs.csi.aws.com";

fn inline(server: &Server, name: &str, node: &str, volume: &Value) {
    server.add(&pod(name, "", node).set(&["spec", "volumes"], json!([volume])));
}

/// Plays a kubelet: says that the node uses a volume, or no more.
fn uses(server: &Server, node: &str, volumes: &[&VolumeName]) {
    let names: Vec<&str> = volumes.iter().map(|volume| volume.as_str()).collect();
    server.change("nodes", node, |node| node["status"]["volumesInUse"] = json!(names));
}

/// Upstream: `Test_ADC_VolumeAttachmentRecovery`, "Scheduled Pod with migrated PV" and "Deleted Pod with migrated PV", and
/// `Test_CreateVolumeSpec` for volumes of claims.
#[test]
fn a_volume_of_an_in_tree_plugin_is_attached_and_detached_by_its_driver() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        let source = json!({ "volumeID": "vol-1" });
        let volume = persistent_volume("data").set(&["spec", "csi"], json!(null));
        add_volume(&server, &volume.set(&["spec", "awsElasticBlockStore"], source));
        server.add(&pod("web", "data", "worker-0"));
        let running = start(&server).await;
        settle(&server, &running).await;
        let key = VolumeName::csi(EBS, "vol-1").attachment("worker-0").unwrap().to_string();
        let made = server.get(ATTACHMENTS, &key).unwrap();
        assert_eq!(made["spec"]["attacher"], EBS);
        assert_eq!(made["spec"]["source"], json!({ "persistentVolumeName": "data" }));
        assert_eq!(reported(&server, "worker-0"), ["vol-1"]);
        server.delete("pods", "default/web");
        settle(&server, &running).await;
        assert_eq!((server.keys(ATTACHMENTS), reported(&server, "worker-0")), (vec![], vec![]));
    });
}

/// Upstream: `Test_CreateVolumeSpec` for inline volumes.
#[test]
fn an_inline_volume_of_an_in_tree_plugin_is_attached_once_its_kubelet_uses_it() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        let running = start(&server).await;
        inline(&server, "web", "worker-0", &json!({ "name": "data", "awsElasticBlockStore": { "volumeID": "vol-1" } }));
        running.at_rest().await;
        assert_eq!((server.count("list pods"), server.writes()), (0, vec![]), "no pods are followed without a need");
        let volume = VolumeName::csi(EBS, "vol-1");
        uses(&server, "worker-0", &[&volume]);
        settle(&server, &running).await;
        let key = volume.attachment("worker-0").unwrap().to_string();
        let spec = server.get(ATTACHMENTS, &key).unwrap()["spec"].clone();
        assert_eq!(spec["source"]["inlineVolumeSpec"]["csi"]["volumeHandle"], "vol-1");
        assert_eq!((spec["attacher"].clone(), reported(&server, "worker-0")), (json!(EBS), vec!["vol-1".to_owned()]));
        assert_eq!(
            server.events()[0],
            format!("Normal SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume \"{EBS}-vol-1\" ")
        );
        // A new process finds the pod by its attachment, and keeps it although the node is not well.
        drop(running);
        let running = start(&server).await;
        set_ready(&server, "worker-0", "Unknown");
        running.pass(MINUTE * 10).await;
        assert_eq!(server.count(DELETE), 0);
        server.delete("pods", "default/web");
        uses(&server, "worker-0", &[]);
        settle(&server, &running).await;
        assert_eq!((server.keys(ATTACHMENTS), reported(&server, "worker-0")), (vec![], vec![]));
    });
}

#[test]
fn an_inline_volume_that_its_node_attaches_is_reported_once_its_kubelet_uses_it() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        let running = start(&server).await;
        inline(&server, "web", "worker-0", &json!({ "name": "data", "fc": { "wwids": ["a"] } }));
        let volume = VolumeName::new("kubernetes.io/fc/[a]");
        uses(&server, "worker-0", &[&volume]);
        running.at_rest().await;
        assert_eq!(reported(&server, "worker-0"), [volume.as_str()]);
        uses(&server, "worker-0", &[]);
        server.delete("pods", "default/web");
        running.at_rest().await;
        assert_eq!((reported(&server, "worker-0"), server.keys(ATTACHMENTS)), (vec![], vec![]));
    });
}

#[test]
fn a_volume_that_cannot_be_its_drivers_and_one_with_a_name_of_a_megabyte_are_not_attached() {
    test(async {
        let server = Server::new();
        server.add(&node("worker-0"));
        let bare = |name: &str| persistent_volume(name).set(&["spec", "csi"], json!(null));
        add_volume(&server, &bare("odd").set(&["spec", "azureDisk"], json!({ "diskURI": "d", "kind": "Shared" })));
        let long = json!({ "volumeID": "v".repeat(1_000_000) });
        add_volume(&server, &bare("long").set(&["spec", "portworxVolume"], long));
        server.add(&pod("a", "odd", "worker-0"));
        server.add(&pod("b", "long", "worker-0"));
        start(&server).await;
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}
