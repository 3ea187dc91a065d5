//! A node is initialized, and a label of it follows the deprecated one that it has replaced.

use anyhow::{Context, Result, ensure};
use e2e::cloud::Instance;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::{DEADLINE, Scene};

/// A node without a kubelet.
const NODE: &str = "e2e-uninitialized";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const ZONE: &str = "topology.kubernetes.io/zone";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let cloud = scene.cluster.cloud().await?;
    let addresses = vec![json!({"type": "InternalIP", "address": "192.0.2.1"})];
    let instance = Instance { addresses, ..Instance::default() };
    cloud.edit(|file| file.state.instances.insert(NODE.to_owned(), instance))?;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let taints = json!([{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]);
    let node = serde_json::from_value(json!({"metadata": {"name": NODE}, "spec": {"taints": taints}}))?;
    nodes.create(&PostParams::default(), &node).await.context("create a node")?;
    scene
        .wait_until("the node is initialized", DEADLINE, async || {
            let node = nodes.get(NODE).await?;
            let spec = node.spec.context("a node without a spec")?;
            ensure!(spec.provider_id.as_deref() == Some("scripted://e2e-uninitialized"), "{:?}", spec.provider_id);
            let taints = spec.taints.unwrap_or_default();
            ensure!(taints.iter().all(|taint| taint.key != UNINITIALIZED), "{taints:?}");
            let addresses = node.status.and_then(|status| status.addresses).unwrap_or_default();
            ensure!(addresses.iter().any(|address| address.address == "192.0.2.1"), "{addresses:?}");
            Ok(())
        })
        .await?;
    let other = Patch::Merge(json!({"metadata": {"labels": {BETA_ZONE: "other"}}}));
    nodes.patch(NODE, &PatchParams::default(), &other).await?;
    scene
        .wait_until("the label follows the deprecated one", DEADLINE, async || {
            let node = nodes.get(NODE).await?;
            ensure!(node.labels().get(ZONE).is_some_and(|zone| zone == "other"), "{:?}", node.labels());
            Ok(())
        })
        .await?;
    nodes.delete(NODE, &DeleteParams::default()).await.map(drop).context("delete the node")
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let labels = json!({BETA_ZONE: "other", ZONE: "another"});
    nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": labels}}))).await?;
    Ok(format!("patch nodes node-0: metadata.labels[{ZONE}]: "))
}
