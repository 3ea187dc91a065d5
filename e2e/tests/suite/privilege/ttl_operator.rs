//! A Node is told its time to live, again when somebody has taken it away, and goes.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::{DEADLINE, Scene};

const TTL: &str = "node.alpha.kubernetes.io/ttl";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": "told"}}))?;
    nodes.create(&PostParams::default(), &node).await?;
    told(scene, &nodes).await?;
    let taken = Patch::Merge(json!({"metadata": {"annotations": {TTL: null}}}));
    nodes.patch("told", &PatchParams::default(), &taken).await?;
    told(scene, &nodes).await?;
    nodes.delete("told", &DeleteParams::default()).await.map(drop).context("delete the Node")
}

async fn told(scene: &Scene, nodes: &Api<Node>) -> Result<()> {
    scene
        .wait_until("the Node is told its time to live", DEADLINE, async || {
            let node = nodes.get("told").await?;
            let ttl = node.annotations().get(TTL).context("not yet")?;
            ensure!(ttl == "0", "in a cluster as small as this it is {ttl}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let other = Patch::Merge(json!({"metadata": {"annotations": {TTL: "7"}}}));
    nodes.patch("node-0", &PatchParams::default(), &other).await?;
    Ok(format!("patch nodes node-0: metadata.annotations[{TTL}]: "))
}
