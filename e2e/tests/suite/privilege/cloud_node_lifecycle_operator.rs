//! A node whose instance is shut down, starts again, and is gone.

use anyhow::{Context, Result, ensure};
use e2e::cloud::Instance;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{DEADLINE, Scene};

/// A node without a kubelet.
const NODE: &str = "e2e-stopped";
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let cloud = scene.cluster.cloud().await?;
    let has = |instance: Instance| cloud.edit(|file| file.state.instances.insert(NODE.to_owned(), instance)).map(drop);
    has(Instance { is_shutdown: true, ..Instance::default() })?;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": NODE}}))?;
    nodes.create(&PostParams::default(), &node).await.context("create a node")?;
    tainted(scene, &nodes, true).await?;
    has(Instance::default())?;
    set_ready(&nodes, "True").await?;
    tainted(scene, &nodes, false).await?;
    has(Instance { exists: false, ..Instance::default() })?;
    set_ready(&nodes, "False").await?;
    scene.gone_from(&nodes, NODE).await
}

async fn set_ready(nodes: &Api<Node>, status: &str) -> Result<()> {
    let since = "2026-01-01T00:00:00Z";
    let ready = json!({"type": "Ready", "status": status, "reason": "Kubelet", "message": "", "lastHeartbeatTime": since,
        "lastTransitionTime": since});
    let patch = Patch::Merge(json!({"status": {"conditions": [ready]}}));
    nodes.patch_status(NODE, &PatchParams::default(), &patch).await.map(drop).context("change the node's condition")
}

async fn tainted(scene: &Scene, nodes: &Api<Node>, expected: bool) -> Result<()> {
    scene
        .wait_until(&format!("the node is tainted: {expected}"), DEADLINE, async || {
            let taints = nodes.get(NODE).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
            ensure!(taints.iter().any(|taint| taint.key == SHUTDOWN) == expected, "{taints:?}");
            Ok(())
        })
        .await
}

/// Not the node of the DaemonSet that another life tampers with.
pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let taint = Patch::Merge(json!({"spec": {"taints": [{"key": SHUTDOWN, "effect": "NoSchedule"}]}}));
    nodes.patch("node-1", &PatchParams::default(), &taint).await?;
    Ok("patch nodes node-1: spec.taints[0]: ".to_owned())
}
