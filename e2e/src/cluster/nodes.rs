//! The nodes of a local cluster: objects that kwok plays the kubelet for.
//! Left out: addresses and pod ranges of their own. Pods of nodes to which no controller gives a CIDR get addresses out
//! of one range.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Cluster, START_DEADLINE};

/// The label kwok looks for. A node that loses it is a node whose kubelet died.
const KUBELET_LABEL: &str = "node.e2e/kubelet";
const ZONES: u32 = 3;

impl Cluster {
    /// Adds `count` nodes, `node-0` and so on after those there are, and waits until pods can be scheduled there.
    pub async fn add_nodes(&self, count: u32) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        let there = u32::try_from(nodes.list(&ListParams::default()).await.context("list nodes")?.items.len())?;
        let new = there..there + count;
        try_join_all(new.map(async |index| add(&nodes, &format!("node-{index}"), index % ZONES, &[]).await)).await?;
        self.wait_nodes(&nodes).await
    }

    /// Adds a node of this name with these labels besides those that every node has, and waits until pods can be
    /// scheduled there.
    pub async fn add_node(&self, name: &str, labels: &[(&str, &str)]) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        add(&nodes, name, 0, labels).await?;
        self.wait_nodes(&nodes).await
    }

    /// Stops or starts the kubelet of one node: without, its lease expires and nothing becomes of its pods.
    pub async fn set_kubelet(&self, node: &str, running: bool) -> Result<()> {
        let label = json!({ "metadata": { "labels": { KUBELET_LABEL: running.then_some("running") } } });
        let nodes: Api<Node> = Api::all(self.client().await?);
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(label)).await.context("label a node")?;
        Ok(())
    }

    async fn wait_nodes(&self, nodes: &Api<Node>) -> Result<()> {
        let end = Instant::now() + START_DEADLINE;
        loop {
            self.check_parts()?;
            let list = nodes.list(&ListParams::default()).await.context("list nodes")?;
            let Some(waiting) = list.items.iter().find(|node| !is_ready(node)) else { return Ok(()) };
            if Instant::now() >= end {
                bail!("node {} does not become ready", waiting.metadata.name.as_deref().unwrap_or_default());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn add(nodes: &Api<Node>, name: &str, zone: u32, labels: &[(&str, &str)]) -> Result<()> {
    let mut node = json!({
        "metadata": {
            "name": name,
            "labels": {
                KUBELET_LABEL: "running",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "region-0",
                "topology.kubernetes.io/zone": format!("zone-{zone}"),
            },
        },
    });
    for (label, value) in labels {
        node["metadata"]["labels"][*label] = json!(value);
    }
    let node: Node = serde_json::from_value(node).context("describe a node")?;
    nodes.create(&PostParams::default(), &node).await.with_context(|| format!("create {name}"))?;
    // Admission taints every new node as not ready, and only the node lifecycle controller would take that back.
    let untainted = Patch::Merge(json!({ "spec": { "taints": null } }));
    nodes.patch(name, &PatchParams::default(), &untainted).await.with_context(|| format!("untaint {name}"))?;
    Ok(())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
