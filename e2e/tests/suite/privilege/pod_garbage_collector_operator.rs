//! A pod that is stuck on a node out of service.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::support::{Scene, template};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let taints = json!([{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]);
    let node = serde_json::from_value(json!({"metadata": {"name": "lost"}, "spec": {"taints": taints}}))?;
    nodes.create(&PostParams::default(), &node).await?;
    let mut spec = template("stuck")["spec"].clone();
    spec["nodeName"] = json!("lost");
    // The taint would not let it stay.
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    scene.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"}, "spec": spec})).await?;
    scene.kubectl("delete pod/stuck --wait=false").await?;
    scene.gone::<Pod>("stuck").await?;
    nodes.delete("lost", &DeleteParams::default()).await.map(drop).context("delete the node")
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    // No node is right for it, and a finalizer holds it.
    let mut spec = template("nowhere")["spec"].clone();
    spec["nodeSelector"] = json!({"no-node-has": "this"});
    let metadata = json!({"name": "nowhere", "finalizers": ["e2e.example/hold"]});
    scene.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})).await?;
    scene.kubectl("delete pod/nowhere --wait=false").await?;
    Ok(format!("patch pods/status {}/nowhere: status.", scene.namespace))
}
