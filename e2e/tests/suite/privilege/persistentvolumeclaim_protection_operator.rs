//! A claim that is protected, again when somebody has taken that away, and goes after its last pod.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::{Value, json};

use super::{protected_again, unprotect};
use crate::support::{Scene, template};

const FINALIZER: &str = "kubernetes.io/pvc-protection";
const NAME: &str = "data";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    scene.apply(&claim(NAME)).await?;
    protected_again(scene, &scene.api::<PersistentVolumeClaim>(), NAME, FINALIZER).await?;
    scene.apply(&user("user")).await?;
    scene.kubectl(&format!("delete pvc/{NAME} --wait=false")).await?;
    let going: PersistentVolumeClaim = scene.fetch(NAME).await?;
    ensure!(going.metadata.deletion_timestamp.is_some(), "a pod uses it: {going:?}");
    scene.kubectl("delete pod/user --grace-period=0 --force").await?;
    scene.gone::<Pod>("user").await?;
    scene.gone::<PersistentVolumeClaim>(NAME).await
}

fn claim(name: &str) -> Value {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "e2e-none"});
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})
}

/// On a node, without a scheduler, which would wait for a volume.
fn user(name: &str) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["nodeName"] = json!("node-0");
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": NAME}}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&claim("tampered")).await?;
    unprotect(&scene.api::<PersistentVolumeClaim>(), "tampered").await?;
    Ok(format!("patch persistentvolumeclaims {}/tampered: metadata.finalizers", scene.namespace))
}
