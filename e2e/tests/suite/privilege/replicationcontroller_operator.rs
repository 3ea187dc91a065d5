//! A ReplicationController's life: it adopts, releases, scales, and is refused a pod.

use anyhow::Result;
use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::json;

use super::live_as;
use crate::support::{Scene, template};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let set = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "controller"},
        "spec": {"replicas": 2, "selector": {"app": "controller"}, "template": template("controller")},
    });
    live_as::<ReplicationController>(scene, &set).await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let status = json!({"status": {"readyReplicas": 0, "availableReplicas": 0}});
    scene.patch_status::<ReplicationController>("rc-0", &status).await?;
    Ok(format!("patch replicationcontrollers/status {}/rc-0: status.availableReplicas: ", scene.namespace))
}
