//! The controllers of nodes handed over in the middle of an eviction's countdown, and back in the middle of the next one.
//!
//! The times of tolerations are in memory, here as there: who takes over begins them anew.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{DEADLINE, Scene, start_operators, template, with_cluster};

const OPERATORS: [&str; 5] = [
    "node-ipam-operator",
    "node-lifecycle-operator",
    "pod-garbage-collector-operator",
    "taint-eviction-operator",
    "ttl-operator",
];
const NODES: u32 = 5;
/// The one that is tainted.
pub(super) const TAINTED: &str = "node-1";
pub(super) const KEY: &str = "e2e.example/leave";
/// Longer than a hand-over takes.
const TOLERATED: Duration = Duration::from_secs(15);

/// The nodes and their versions, once nobody has anything to do to them.
async fn at_rest(scene: &Scene) -> Result<Vec<String>> {
    scene
        .wait_until("all nodes have what they need", DEADLINE, async || {
            let nodes = all(scene).await?;
            for node in &nodes {
                let spec = node.spec.clone().unwrap_or_default();
                let foreign = spec.taints.unwrap_or_default().into_iter().filter(|taint| taint.key != KEY).count();
                let ttl = node.annotations().get("node.alpha.kubernetes.io/ttl");
                ensure!(foreign == 0 && ttl.is_some() && spec.pod_cidr.is_some(), "{node:?}");
                ensure!(node.labels().contains_key("beta.kubernetes.io/os"), "{node:?}");
            }
            Ok(())
        })
        .await?;
    versions(scene).await
}

async fn all(scene: &Scene) -> Result<Vec<Node>> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    Ok(nodes.list(&ListParams::default()).await.context("list nodes")?.items)
}

async fn versions(scene: &Scene) -> Result<Vec<String>> {
    let nodes = all(scene).await?;
    Ok(nodes.iter().map(|node| format!("{} {:?}", node.name_any(), node.resource_version())).collect())
}

/// A pod whose countdown begins.
pub(super) async fn begin(scene: &Scene, name: &str, seconds: u64) -> Result<()> {
    let mut pod = template(name);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["nodeName"] = json!(TAINTED);
    pod["spec"]["tolerations"] =
        json!([{"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]);
    scene.apply(&pod).await.map(drop)
}

async fn is_there(scene: &Scene, name: &str) -> Result<bool> {
    let pod: Option<Pod> = scene.api().get_opt(name).await?;
    Ok(pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none()))
}

/// The pod goes when its time is over, which began with this moment.
async fn goes_in_time(scene: &Scene, name: &str, began: Instant) -> Result<()> {
    ensure!(is_there(scene, name).await?, "{name} did not outlive the hand-over");
    scene
        .wait_until(&format!("{name} is evicted"), TOLERATED + DEADLINE, async || {
            ensure!(!is_there(scene, name).await?, "nobody has evicted it");
            Ok(())
        })
        .await?;
    let stayed = began.elapsed();
    ensure!(stayed + Duration::from_secs(1) >= TOLERATED, "{name} stayed for {stayed:?}");
    ensure!(is_there(scene, "patient").await?, "it has an hour");
    Ok(())
}

#[test]
fn nodes_change_hands_in_the_middle_of_an_evictions_countdown_and_back() -> Result<()> {
    let options = ClusterOptions { nodes: NODES, ..ClusterOptions::with_controller_manager() };
    with_cluster(options, async |scene| {
        let rest = ControllerManager::without(OPERATORS.map(upstream_controller));
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let taint = Patch::Merge(json!({"spec": {"taints": [{"key": KEY, "effect": "NoExecute"}]}}));
        nodes.patch(TAINTED, &PatchParams::default(), &taint).await.context("taint a node")?;
        let finished = at_rest(scene).await?;
        begin(scene, "patient", 3600).await?;
        begin(scene, "first", TOLERATED.as_secs()).await?;

        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(rest).await?;
        let began = Instant::now();
        let mut operators = start_operators(&scene.cluster, OPERATORS).await?;
        goes_in_time(scene, "first", began).await?;
        assert_eq!(versions(scene).await?, finished, "the operators wrote what needed no write");

        begin(scene, "second", TOLERATED.as_secs()).await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        goes_in_time(scene, "second", Instant::now()).await?;
        assert_eq!(versions(scene).await?, finished, "what the operators left was not what upstream expects");
        Ok(())
    })
}
