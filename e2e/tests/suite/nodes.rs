//! Nodes whose kubelets fall silent, for good or only as it seems: who loses pods, and who must not.
//!
//! kwok renews each Lease every second here, and a node that is silent for six is lost, so that no test waits for minutes.
//! Left out: rates and zones in numbers, which tables of node-lifecycle-operator's own tests have.

mod minutes;
mod outages;
mod silence;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::behind::Behind;
use crate::support::{DEADLINE, Scene, template};

const LIFECYCLE: &str = "node-lifecycle-operator";
const EVICTION: &str = "taint-eviction-operator";

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Of node-lifecycle-operator and of kube-controller-manager.
const FLAGS: [&str; 3] = ["--node-monitor-period=500ms", "--node-monitor-grace-period=6s", "--node-eviction-rate=5"];

/// So many nodes, in three zones in turn.
fn nodes(nodes: u32) -> ClusterOptions {
    ClusterOptions { nodes, node_lease: 4, ..ClusterOptions::default() }
}

/// `node-7`.
fn node(number: u32) -> String {
    format!("node-{number}")
}

/// A pod on a node that tolerates for so many seconds that the node is lost or not ready.
fn pod_on(node: &str, name: &str, seconds: u32) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["nodeName"] = json!(node);
    let toleration =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
    spec["tolerations"] = json!([toleration(NOT_READY), toleration(UNREACHABLE)]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "on-a-node"}}, "spec": spec})
}

/// A pod on each of these nodes, called after it.
async fn pods_on(scene: &Scene, nodes: impl IntoIterator<Item = u32>, seconds: u32) -> Result<()> {
    let pods = nodes.into_iter().map(|number| (node(number), format!("on-{number}")));
    try_join_all(pods.map(async |(node, name)| scene.apply(&pod_on(&node, &name, seconds)).await.map(drop))).await?;
    Ok(())
}

async fn set_kubelets(scene: &Scene, nodes: impl IntoIterator<Item = u32>, running: bool) -> Result<()> {
    let each = nodes.into_iter().map(async |number| scene.cluster.set_kubelet(&node(number), running).await);
    try_join_all(each).await.map(drop)
}

/// The pods that are being deleted, or gone.
async fn evicted(scene: &Scene, all: impl IntoIterator<Item = u32>) -> Result<BTreeSet<u32>> {
    let pods: Vec<Pod> = scene.list("app=on-a-node").await?;
    let stays = |number: &u32| {
        let name = format!("on-{number}");
        pods.iter().any(|pod| pod.name_any() == name && pod.metadata.deletion_timestamp.is_none())
    };
    Ok(all.into_iter().filter(|number| !stays(number)).collect())
}

/// Waits until the pods of exactly these nodes have been evicted.
async fn wait_evicted(scene: &Scene, of: u32, expected: impl IntoIterator<Item = u32>) -> Result<()> {
    let expected: BTreeSet<u32> = expected.into_iter().collect();
    scene
        .wait_until(&format!("the pods of {expected:?} are evicted"), 2 * DEADLINE, async || {
            let evicted = evicted(scene, 0..of).await?;
            ensure!(evicted == expected, "those of {evicted:?} are; {}", describe(scene).await?);
            Ok(())
        })
        .await
}

/// The status of a node's condition Ready.
fn ready(node: &Node) -> String {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|is| is.type_ == "Ready").map_or_else(String::new, |ready| ready.status.clone())
}

/// The keys of the taints of a node that end pods.
fn ending(node: &Node) -> Vec<&str> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().filter(|taint| taint.effect == "NoExecute").map(|taint| taint.key.as_str()).collect()
}

async fn all_nodes(scene: &Scene) -> Result<Vec<Node>> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    Ok(nodes.list(&ListParams::default()).await.context("list nodes")?.items)
}

/// A line about each node, for errors.
async fn describe(scene: &Scene) -> Result<String> {
    let nodes = all_nodes(scene).await?;
    let line = |node: &Node| format!("{} {} {:?}", node.name_any(), ready(node), ending(node));
    Ok(nodes.iter().map(line).collect::<Vec<_>>().join(", "))
}

/// Waits until exactly these nodes are Unknown, and all others ready.
async fn wait_lost(scene: &Scene, expected: impl IntoIterator<Item = u32>) -> Result<()> {
    let expected: BTreeSet<String> = expected.into_iter().map(node).collect();
    scene
        .wait_until(&format!("{expected:?} are lost"), DEADLINE, async || {
            let nodes = all_nodes(scene).await?;
            let is = |status: &str| {
                let such = nodes.iter().filter(|node| ready(node) == status);
                such.map(ResourceExt::name_any).collect::<BTreeSet<_>>()
            };
            let (lost, ready) = (is("Unknown"), is("True"));
            ensure!(lost == expected && lost.len() + ready.len() == nodes.len(), "{}", describe(scene).await?);
            Ok(())
        })
        .await
}

/// The nodes whose status it has written: those that it took for lost.
fn judged(lifecycle: &Behind) -> BTreeSet<String> {
    let writes = lifecycle.proxy.writes("/api/v1/nodes/*/status");
    writes.iter().filter_map(|write| write.path.split('/').nth(4).map(ToOwned::to_owned)).collect()
}
