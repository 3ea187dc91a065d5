//! The nodes of a local cluster: objects that kwok plays the kubelet for.
//! Left out: addresses and pod ranges of their own. Pods of nodes to which no controller gives a CIDR get addresses out
//! of one range.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use shared::api::taint::NOT_READY;
use tokio::time::{Instant, sleep};

use super::local::{Cluster, START_DEADLINE};

/// The label kwok looks for. A node that loses it is a node whose kubelet died.
const KUBELET_LABEL: &str = "node.e2e/kubelet";

impl Cluster {
    /// Adds `count` nodes, `node-0` and so on after those there are, and waits until pods can be scheduled there.
    pub async fn add_nodes(&self, count: u32) -> Result<()> {
        self.add_and_wait(count, is_schedulable).await
    }

    /// As [`Self::add_nodes`], but waits for nothing.
    pub async fn create_nodes(&self, count: u32) -> Result<()> {
        let (nodes, zones): (Api<Node>, u32) = (Api::all(self.client().await?), self.local()?.zones);
        let there = u32::try_from(nodes.list(&ListParams::default()).await.context("list nodes")?.items.len())?;
        let new = there..there + count;
        let each = new.map(async |index| self.add(&nodes, &format!("node-{index}"), index % zones, &[]).await);
        try_join_all(each).await.map(drop)
    }

    pub(super) async fn add_and_wait(&self, count: u32, is_done: fn(&Node) -> bool) -> Result<()> {
        self.create_nodes(count).await?;
        self.wait_nodes(&Api::all(self.client().await?), is_done).await
    }

    /// Adds a node of this name with these labels besides those that every node has, and waits until pods can be
    /// scheduled there.
    pub async fn add_node(&self, name: &str, labels: &[(&str, &str)]) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        self.add(&nodes, name, 0, labels).await?;
        self.wait_nodes(&nodes, is_schedulable).await
    }

    async fn add(&self, nodes: &Api<Node>, name: &str, zone: u32, labels: &[(&str, &str)]) -> Result<()> {
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
        if !self.local()?.is_untainted {
            // Admission taints every new node as not ready, and only the node lifecycle controller would take that back.
            let untainted = Patch::Merge(json!({ "spec": { "taints": null } }));
            nodes.patch(name, &PatchParams::default(), &untainted).await.with_context(|| format!("untaint {name}"))?;
        }
        Ok(())
    }

    /// Stops or starts the kubelet of one node: without, its lease expires and nothing becomes of its pods.
    pub async fn set_kubelet(&self, node: &str, running: bool) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(kubelet(running))).await.context("label a node")?;
        Ok(())
    }

    async fn wait_nodes(&self, nodes: &Api<Node>, is_done: fn(&Node) -> bool) -> Result<()> {
        let end = Instant::now() + START_DEADLINE;
        loop {
            self.check_parts()?;
            let list = nodes.list(&ListParams::default()).await.context("list nodes")?;
            let Some(waiting) = list.items.iter().find(|node| !is_done(node)) else { return Ok(()) };
            if Instant::now() >= end {
                bail!("node {} does not become ready", waiting.metadata.name.as_deref().unwrap_or_default());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The merge patch that starts or stops a node's kubelet.
pub fn kubelet(running: bool) -> Value {
    json!({ "metadata": { "labels": { KUBELET_LABEL: running.then_some("running") } } })
}

pub(super) fn is_schedulable(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    is_ready(node) && taints.into_iter().all(|taint| taint.key != NOT_READY)
}

pub(super) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
