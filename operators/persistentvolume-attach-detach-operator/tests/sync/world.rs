//! A cluster with nodes, volumes and pods, and what its kubelets do.

use std::time::Duration;

use persistentvolume_attach_detach_operator::controller::PersistentVolumeAttachDetachOperator;
use persistentvolume_attach_detach_operator::objects::volume::VolumeName;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::{Running, start_at_rest};
use shared::testing::{ObjectBuilder, object, uid};

pub(crate) const ATTACHMENTS: &str = "volumeattachments";
pub(crate) const DRIVER: &str = "csi.example.com";
pub(crate) const CREATE: &str = "create volumeattachments";
pub(crate) const DELETE: &str = "delete volumeattachments";
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// The unique name of the volume with this handle.
pub(crate) fn volume(handle: &str) -> VolumeName {
    VolumeName::csi(DRIVER, handle)
}

/// The key of a VolumeAttachment.
pub(crate) fn attachment(handle: &str, node: &str) -> String {
    volume(handle).attachment(node).unwrap().to_string()
}

pub(crate) fn node(name: &str) -> ObjectBuilder {
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    object("v1", "Node", name).namespace("").annotation(MANAGED, "true").set(&["status", "conditions"], ready)
}

/// A volume for one node, bound to the claim of its name.
pub(crate) fn persistent_volume(name: &str) -> ObjectBuilder {
    let claim = json!({ "namespace": "default", "name": name, "uid": uid(&format!("{name}-claim")).to_string() });
    object("v1", "PersistentVolume", name)
        .namespace("")
        .set(&["spec", "csi"], json!({ "driver": DRIVER, "volumeHandle": name }))
        .set(&["spec", "accessModes"], json!(["ReadWriteOnce"]))
        .set(&["spec", "claimRef"], claim)
}

pub(crate) fn claim(name: &str) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", name)
        .uid_of(&format!("{name}-claim"))
        .set(&["spec", "volumeName"], name)
        .phase("Bound")
}

/// A pod with this claim's volume.
pub(crate) fn pod(name: &str, claim: &str, node: &str) -> ObjectBuilder {
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }]);
    shared::testing::pod(name).node(node).set(&["spec", "volumes"], volumes)
}

/// Adds a volume and its claim.
pub(crate) fn add_volume(server: &Server, volume: &ObjectBuilder) {
    let name = volume.json()["metadata"]["name"].as_str().unwrap().to_owned();
    server.add(volume);
    server.add(&claim(&name));
}

pub(crate) fn add_many(server: &Server, nodes: &[&str], volumes: &[&str]) {
    for name in nodes {
        server.add(&node(name));
    }
    for name in volumes {
        add_volume(server, &persistent_volume(name));
    }
}

/// Plays the driver's attacher: attaches what is there, and lets go what is being deleted.
pub(crate) fn run_attacher(server: &Server) {
    for key in server.keys(ATTACHMENTS) {
        let found = server.get(ATTACHMENTS, &key).unwrap();
        let finalizers = &found["metadata"]["finalizers"];
        if found["metadata"]["deletionTimestamp"].is_null() {
            server.change(ATTACHMENTS, &key, |found| {
                found["metadata"]["finalizers"] = json!(["external-attacher/csi-example-com"]);
                found["status"] = json!({ "attached": true });
            });
        } else if !finalizers.is_null() {
            server.change(ATTACHMENTS, &key, |found| found["metadata"]["finalizers"] = Value::Null);
        }
    }
}

/// Plays a kubelet: says which volumes the node uses.
pub(crate) fn uses(server: &Server, node: &str, handles: &[&str]) {
    let names: Vec<String> = handles.iter().map(|handle| volume(handle).to_string()).collect();
    server.change("nodes", node, |node| node["status"]["volumesInUse"] = json!(names));
}

pub(crate) fn set_ready(server: &Server, node: &str, status: &str) {
    server.change("nodes", node, |node| node["status"]["conditions"][0]["status"] = json!(status));
}

pub(crate) fn put_out_of_service(server: &Server, node: &str) {
    let taint = json!([{ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" }]);
    server.change("nodes", node, |node| node["spec"]["taints"] = taint);
}

/// The handles that the status of a node names.
pub(crate) fn reported(server: &Server, node: &str) -> Vec<String> {
    let node = server.get("nodes", node).unwrap();
    let attached = node["status"]["volumesAttached"].as_array().cloned().unwrap_or_default();
    let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
    let handle = |name: String| name.split_once('^').map_or(name.clone(), |(_, handle)| handle.to_owned());
    attached.iter().map(name).map(handle).collect()
}

/// The nodes for which there is a VolumeAttachment of this volume, of these.
pub(crate) fn attached_to(server: &Server, handle: &str, nodes: &[&str]) -> Vec<String> {
    let exists = |node: &&&str| server.get(ATTACHMENTS, &attachment(handle, node)).is_some();
    nodes.iter().filter(exists).map(ToString::to_string).collect()
}

pub(crate) async fn start(server: &Server) -> Running {
    start_at_rest::<PersistentVolumeAttachDetachOperator>(server, &[]).await
}

/// Starts the operator in a cluster in which the pod `web` has the volume `data` on `worker-0`, the first of these nodes.
pub(crate) async fn attached(server: &Server, nodes: &[&str], flags: &[&str]) -> Running {
    add_many(server, nodes, &["data"]);
    server.add(&pod("web", "data", "worker-0"));
    let running = start_at_rest::<PersistentVolumeAttachDetachOperator>(server, flags).await;
    settle(server, &running).await;
    running
}

/// Lets the attacher work until nothing changes any more.
pub(crate) async fn settle(server: &Server, running: &Running) {
    for _ in 0..4 {
        running.at_rest().await;
        run_attacher(server);
    }
    running.at_rest().await;
}
