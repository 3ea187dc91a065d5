//! Nodes get CIDRs while answers get lost, patches are refused and the operator is killed: each has one of its own.
//! Left out: a range that is full, which the operator's life shows.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::proxy::Action;
use futures::future::try_join_all;
use http::StatusCode;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

use crate::support::behind::{Behind, Gate, nth_work};
use crate::support::{DEADLINE, Scene, with_cluster};

const OPERATOR: &str = "node-ipam-operator";
/// The nodes that kwok plays, and how many come besides at a time.
const PLAYED: u32 = 2;
const BATCH: u32 = 20;

async fn add_batch(nodes: &Api<Node>, name: &str) -> Result<()> {
    let added = (0..BATCH).map(async |number| {
        let node = serde_json::from_value(json!({"metadata": {"name": format!("{name}-{number}")}}))?;
        nodes.create(&PostParams::default(), &node).await.map(drop).context("create a node")
    });
    try_join_all(added).await.map(drop)
}

/// Waits until there are so many nodes, each with a CIDR that no other one has.
async fn all_differ(scene: &Scene, nodes: &Api<Node>, count: u32) -> Result<()> {
    scene
        .wait_until(&format!("{count} nodes have a CIDR each"), DEADLINE, async || {
            let nodes = nodes.list(&ListParams::default()).await?.items;
            let cidrs = nodes.iter().filter_map(|node| node.spec.as_ref()?.pod_cidrs.clone());
            let cidrs: Vec<Vec<String>> = cidrs.collect();
            let different: BTreeSet<&Vec<String>> = cidrs.iter().collect();
            ensure!(different.len() == cidrs.len(), "two have the same: {cidrs:?}");
            ensure!(u32::try_from(cidrs.len())? == count, "{} of {} have one", cidrs.len(), nodes.len());
            Ok(())
        })
        .await
}

#[test]
fn no_two_nodes_have_the_same_cidr_whatever_gets_lost() -> Result<()> {
    with_cluster(ClusterOptions { nodes: PLAYED, ..ClusterOptions::default() }, async |scene| {
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let mut behind = Behind::start(scene, OPERATOR, OPERATOR, &[]).await?;
        let faults = [("lost", Action::LoseResponse), ("refused", Action::reply(StatusCode::FORBIDDEN))];
        for (count, (name, fault)) in (1..).zip(faults) {
            behind.strike_work(&fault);
            add_batch(&nodes, name).await?;
            all_differ(scene, &nodes, PLAYED + count * BATCH).await?;
            behind.proxy.clear();
        }

        let gate = Gate::new();
        behind.proxy.add(nth_work(gate.after(), BATCH / 2));
        add_batch(&nodes, "killed").await?;
        gate.reached().await;
        nodes.delete("lost-0", &DeleteParams::default()).await.context("delete a node")?;
        behind.kill_and_restart()?;
        all_differ(scene, &nodes, PLAYED + 3 * BATCH - 1).await
    })
}
