//! Claims, volumes and classes, and the operator at rest.

use persistentvolume_binder_operator::controller::PersistentVolumeBinderOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::{Running, start_at_rest};
use shared::testing::{ObjectBuilder, object};

pub(crate) const CLAIMS: &str = "persistentvolumeclaims";
pub(crate) const VOLUMES: &str = "persistentvolumes";
pub(crate) const DATA: &str = "default/data";

pub(crate) fn claim(name: &str, size: &str) -> ObjectBuilder {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": size } } });
    object("v1", "PersistentVolumeClaim", name).set(&["spec"], spec).phase("Pending")
}

pub(crate) fn of_class(object: ObjectBuilder, class: &str) -> ObjectBuilder {
    object.set(&["spec", "storageClassName"], class)
}

pub(crate) fn volume(name: &str, size: &str, policy: &str) -> ObjectBuilder {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": size }, "persistentVolumeReclaimPolicy": policy,
        "hostPath": { "path": format!("/tmp/persistentvolume-binder-operator/{name}") },
    });
    object("v1", "PersistentVolume", name).namespace("").set(&["spec"], spec)
}

pub(crate) fn class(name: &str, mode: &str) -> ObjectBuilder {
    let class = object("storage.k8s.io/v1", "StorageClass", name).namespace("");
    class.set(&["provisioner"], "csi.example.com").set(&["volumeBindingMode"], mode)
}

pub(crate) async fn start(server: &Server) -> Running {
    start_at_rest::<PersistentVolumeBinderOperator>(server, &[]).await
}

pub(crate) fn at(server: &Server, resource: &str, key: &str, path: &str) -> Value {
    server.get(resource, key).unwrap().pointer(path).cloned().unwrap_or_default()
}

/// The phases of a claim and of a volume.
pub(crate) fn phases(server: &Server, claim: &str, volume: &str) -> (Value, Value) {
    (at(server, CLAIMS, claim, "/status/phase"), at(server, VOLUMES, volume, "/status/phase"))
}
