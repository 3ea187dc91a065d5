//! Nodes whose instances are gone, and nodes of which a cloud only seems to know nothing.

use anyhow::{Context, Result, ensure};
use e2e::cloud::{Action, Call, Fault, Instance, Refusal, ScriptedCloud};
use futures::future::try_join_all;
use http::Method;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::json;

use super::{nodes, start, struck, with_operator};
use crate::support::behind::{Gate, nth_work};
use crate::support::{DEADLINE, Scene};

const OPERATOR: &str = "cloud-node-lifecycle-operator";
const PERIOD: &str = "--node-monitor-period=500ms";

/// Nodes without a kubelet, about which the operator asks the cloud.
const NODES: [&str; 4] = ["gone", "left", "right", "last"];

/// Creates a node; gives its uid.
async fn create(scene: &Scene, name: &str) -> Result<String> {
    let node = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    nodes(scene).create(&PostParams::default(), &node).await?.uid().context("a node without a uid")
}

async fn create_all(scene: &Scene) -> Result<Vec<String>> {
    try_join_all(NODES.map(|name| create(scene, name))).await
}

/// Whether the cloud still has the instance of a node.
fn set_instance(cloud: &ScriptedCloud, name: &str, exists: bool) -> Result<()> {
    let instance = Instance { exists, ..Instance::default() };
    cloud.edit(|file| file.state.instances.insert(name.to_owned(), instance)).map(drop)
}

/// Waits until the cloud was asked for so many more times about each of these nodes.
async fn asked(scene: &Scene, cloud: &ScriptedCloud, names: &[&str], times: usize) -> Result<()> {
    let count = |name: &str| anyhow::Ok(cloud.calls_about(Call::InstanceExists, name)?.len());
    for name in names {
        let before = count(name)?;
        scene
            .wait_until(&format!("the cloud is asked about {name}"), DEADLINE, async || {
                let now = count(name)?;
                ensure!(now >= before + times, "{} times", now - before);
                Ok(())
            })
            .await?;
    }
    Ok(())
}

/// An error if one of these nodes is not the one that it was.
async fn all_there(scene: &Scene, uids: &[String]) -> Result<()> {
    for (name, uid) in NODES.iter().zip(uids) {
        let node = nodes(scene).get_opt(name).await?;
        ensure!(node.and_then(|node| node.uid()).as_ref() == Some(uid), "{name} was deleted");
    }
    Ok(())
}

#[test]
fn only_the_node_is_deleted_whose_instance_is_gone_although_the_operator_is_killed() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, mut victim| {
        let uids = create_all(scene).await?;
        asked(scene, cloud, &NODES, 1).await?;
        for happens in [false, true] {
            let gate = Gate::new();
            victim.proxy.add(nth_work(if happens { gate.after() } else { gate.before() }, 1));
            set_instance(cloud, "gone", false)?;
            gate.reached().await;
            victim.kill_and_restart()?;
            scene.gone_from(&nodes(scene), "gone").await?;
            // Another machine of this name is not the one that is gone.
            set_instance(cloud, "gone", true)?;
            let uid = create(scene, "gone").await?;
            asked(scene, cloud, &NODES, 3).await?;
            let now: Vec<String> = std::iter::once(uid).chain(uids.iter().skip(1).cloned()).collect();
            all_there(scene, &now).await?;
        }
        Ok(())
    })
}

#[test]
fn no_node_is_deleted_for_one_answer_of_yesterday() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, _operator| {
        cloud.edit(|file| file.yesterday.only_listed_exist = true)?;
        let uids = create_all(scene).await?;
        asked(scene, cloud, &NODES, 1).await?;
        for name in NODES {
            cloud.add(Fault::new(Call::InstanceExists, Action::Yesterday).about(name))?;
        }
        struck(scene, cloud).await?;
        asked(scene, cloud, &NODES, 3).await?;
        all_there(scene, &uids).await
    })
}

#[test]
fn no_node_is_deleted_by_a_cloud_that_fails_dies_or_knows_no_node_any_more() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, operator| {
        let uids = create_all(scene).await?;
        asked(scene, cloud, &NODES, 1).await?;

        let failed = Refusal::Failed { message: "no route to host".to_owned() };
        cloud.add(Fault { times: Some(12), ..Fault::new(Call::InstanceExists, Action::Refuse(failed)) })?;
        struck(scene, cloud).await?;
        cloud.clear()?;

        cloud.add(Fault::new(Call::InstanceExists, Action::DieBefore))?;
        cloud.died().await?;
        cloud.restart().await?;
        asked(scene, cloud, &NODES, 1).await?;

        cloud.edit(|file| file.state.only_listed_exist = true)?;
        asked(scene, cloud, &NODES, 4).await?;
        all_there(scene, &uids).await?;

        // One node without an instance is believed again once the cloud knows the others.
        cloud.edit(|file| file.state.only_listed_exist = false)?;
        set_instance(cloud, "gone", false)?;
        scene.gone_from(&nodes(scene), "gone").await?;
        asked(scene, cloud, &NODES[1..], 1).await?;
        ensure!(operator.count(&Method::DELETE, "/api/v1/nodes/*") == 1, "{:?}", operator.work());
        Ok(())
    })
}

#[test]
fn two_processes_at_work_delete_a_node_once() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, first| {
        let second = start(scene, OPERATOR, "second", &[PERIOD]).await?;
        let uids = create_all(scene).await?;
        set_instance(cloud, "gone", false)?;
        scene.gone_from(&nodes(scene), "gone").await?;
        set_instance(cloud, "gone", true)?;
        let uid = create(scene, "gone").await?;
        asked(scene, cloud, &NODES, 4).await?;
        let now: Vec<String> = std::iter::once(uid).chain(uids.into_iter().skip(1)).collect();
        all_there(scene, &now).await?;
        let deletions: usize = [&first, &second].map(|one| one.count(&Method::DELETE, "/api/v1/nodes/*")).iter().sum();
        ensure!(deletions >= 1, "neither deleted it: {:?} {:?}", first.work(), second.work());
        Ok(())
    })
}
