//! A ReplicaSet's life: it adopts, releases, scales, and is refused a pod.

use anyhow::Result;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::live_as;
use crate::support::{Scene, template};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "set"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "set"}}, "template": template("set")},
    });
    live_as::<ReplicaSet>(scene, &set).await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let pod = super::first::<Pod>(scene, "app=set-0").await?;
    scene.patch::<Pod>(&pod, &json!({"metadata": {"labels": {"app": null}}})).await?;
    Ok(format!("patch pods {}/{pod}: metadata.ownerReferences[uid=", scene.namespace))
}
