//! What shows only after a minute, or among thousands of nodes: `make e2e` leaves this module out, and
//! `make e2e-minutes` runs it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::Operator;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::on_quiet_cluster;
use crate::support::clusters::metrics_token;
use crate::support::objects::node_of;
use crate::support::{DEADLINE, daemon_set, start_operators, stateful_set, template, with_cluster};

const MINUTE: Duration = Duration::from_secs(60);
/// The most pods that an owner of three makes in a minute in which its nodes reject all of them.
const MOST: usize = 40;
const NODES: u32 = 5000;
/// How many requests about nodes are under way at a time.
const PARALLEL: usize = 20;

/// Owners of three pods each, whose nodes reject every one.
fn rejected() -> Vec<(&'static str, Value)> {
    let replicas = |kind: &str, api_version: &str, name: &str, selector: Value| {
        json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": name},
            "spec": {"replicas": 3, "selector": selector, "template": template(name)},
        })
    };
    let mut owners = vec![
        ("rs", replicas("ReplicaSet", "apps/v1", "rs", json!({"matchLabels": {"app": "rs"}}))),
        ("rc", replicas("ReplicationController", "v1", "rc", json!({"app": "rc"}))),
        ("parallel", stateful_set("parallel", 3, &json!({"podManagementPolicy": "Parallel"}))),
        ("ordered", stateful_set("ordered", 3, &json!({}))),
        ("ds", daemon_set("ds", &json!({}))),
    ];
    for (_, owner) in &mut owners {
        owner["spec"]["template"]["metadata"]["annotations"] = json!({"pods.e2e/becomes": "refused"});
    }
    owners
}

#[test]
fn nodes_that_reject_every_pod_get_few_in_a_minute_and_another_node_gets_its_own_at_once() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 3, ..ClusterOptions::default() }, async |scene| {
        let kinds =
            ["replicaset-operator", "replicationcontroller-operator", "statefulset-operator", "daemonset-operator"];
        let _operators = start_operators(&scene.cluster, kinds).await?;
        let (mut samplers, begun) = (Vec::new(), Instant::now());
        for (name, owner) in rejected() {
            samplers.push((name, scene.sample(&format!("app={name}")).await?));
            scene.apply(&owner).await?;
        }
        scene
            .wait_for_minutes("a minute is over", 2 * MINUTE, async || {
                ensure!(begun.elapsed() >= MINUTE, "{:?}", begun.elapsed());
                Ok(())
            })
            .await?;
        for (name, sampler) in samplers {
            let made = sampler.finish(scene).await?.pods.len();
            eprintln!("{name}: {made} pods in {:?}", begun.elapsed());
            ensure!((3..=MOST).contains(&made), "{made} pods of {name}");
        }

        let added = Instant::now();
        scene.cluster.add_nodes(1).await?;
        scene
            .wait_until("there was a pod for the new node", DEADLINE, async || {
                let pods: Vec<Pod> = scene.list("app=ds").await?;
                let is_there = pods.iter().any(|pod| {
                    pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some("node-3"))
                        || node_of(pod) == Some("node-3")
                });
                ensure!(is_there, "{} pods", pods.len());
                Ok(())
            })
            .await?;
        let took = added.elapsed();
        ensure!(took < Duration::from_secs(5), "the new node waited {took:?} for its pod");
        Ok(())
    })
}

/// Upstream: k/k#121474.
#[test]
fn five_thousand_nodes_that_say_that_they_live_are_no_work() -> Result<()> {
    on_quiet_cluster(async |scene| {
        let operators = start_operators(&scene.cluster, ["daemonset-operator"]).await?;
        let operator = operators.first().context("it has started")?;
        let token = metrics_token(scene).await?;
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let mut set = daemon_set("web", &json!({}));
        set["spec"]["template"]["spec"]["nodeSelector"] = json!({"seen": "yes"});
        scene.apply(&set).await?;
        label(&nodes, "node-0", "yes").await?;
        scene.covered("web", (1, 1)).await?;
        each_node(async |name| create(&nodes, &name).await).await?;
        // What comes after the last of them has been seen, and so they have.
        label(&nodes, "node-1", "yes").await?;
        scene.covered("web", (2, 2)).await?;

        let (before, cpu) = (adds(operator, &token).await?, operator.usage()?.cpu);
        each_node(async |name| heartbeat(&nodes, &name).await).await?;
        label(&nodes, "node-1", "no").await?;
        scene.covered("web", (1, 1)).await?;
        let (after, cpu) = (adds(operator, &token).await?, operator.usage()?.cpu.saturating_sub(cpu));
        eprintln!("{NODES} heartbeats: {cpu:?} of CPU");
        let (looks, syncs) = (after.nodes - before.nodes, after.sets - before.sets);
        ensure!(looks == 1 && syncs < 20, "{looks} nodes were looked at for one with another label, in {syncs} syncs");
        ensure!(cpu < Duration::from_secs(3), "{cpu:?}");
        Ok(())
    })
}

/// Changes something of a node that a DaemonSet looks for.
async fn label(nodes: &Api<Node>, name: &str, seen: &str) -> Result<()> {
    let label = Patch::Merge(json!({"metadata": {"labels": {"seen": seen}}}));
    nodes.patch(name, &PatchParams::default(), &label).await.map(drop).context("label a node")
}

async fn each_node(one: impl AsyncFn(String) -> Result<()>) -> Result<()> {
    stream::iter(0..NODES).map(|at| one(format!("far-{at}"))).buffer_unordered(PARALLEL).try_collect().await
}

/// A node that nobody plays the kubelet of: that of thousands would renew so many Leases that nothing else is done.
async fn create(nodes: &Api<Node>, name: &str) -> Result<()> {
    let node = json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}});
    let node: Node = serde_json::from_value(node)?;
    nodes.create(&PostParams::default(), &node).await.map(drop).with_context(|| format!("create {name}"))
}

async fn heartbeat(nodes: &Api<Node>, name: &str) -> Result<()> {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it lives",
        "lastHeartbeatTime": "2026-01-01T12:00:00Z", "lastTransitionTime": "2026-01-01T12:00:00Z",
    });
    let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    nodes.patch_status(name, &PatchParams::default(), &status).await.map(drop).context("say that a node lives")
}

/// How often keys were added to the operator's queues.
struct Adds {
    sets: u32,
    nodes: u32,
}

async fn adds(operator: &Operator, token: &str) -> Result<Adds> {
    let (_, text) = operator.get("/metrics", Some(token)).await?;
    let count = |queue: &str| {
        let line = format!("workqueue_adds_total{{name=\"{queue}\"}} ");
        let count = text.lines().find_map(|found| found.strip_prefix(&line)).with_context(|| format!("no {line}"))?;
        count.parse().context("count")
    };
    Ok(Adds { sets: count("daemonset")?, nodes: count("daemonset-node-updates")? })
}
