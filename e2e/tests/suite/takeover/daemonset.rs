//! A DaemonSet of fifty nodes handed over in the middle of a rolling update, and back in the middle of the next one.
//!
//! Left out: how many pods are missing at a time. Upstream counts a pod that goes more than once, and may then take
//! others before it has seen the first ones go.

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use serde_json::json;

use super::{create, odd, there_and_back, versions};
use crate::support::{DEADLINE, Scene, daemon_set, start_operators, with_cluster};

const OPERATOR: &str = "daemonset-operator";
const NODES: u32 = 50;
/// It has a pod on each of them.
const COVERED: (i32, i32) = (50, 50);

/// Finished work: a DaemonSet of three nodes that was updated, and the update undone.
async fn finish(scene: &Scene, name: &str) -> Result<()> {
    let hosts = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-0", "node-1", "node-2"]});
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [hosts]}]});
    let mut set = daemon_set(name, &json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 3}}}));
    set["spec"]["template"]["spec"]["affinity"] =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    odd(&mut set["spec"]["template"]);
    create::<DaemonSet>(scene, set).await?;
    there_and_back(scene, "daemonset", name, async || scene.covered(name, (3, 3)).await).await
}

/// A rolling update with `meanwhile` in its middle. Each node gets one new pod for its old one, whoever sees to it.
async fn roll<T>(scene: &Scene, step: u32, meanwhile: impl AsyncFnOnce() -> Result<T>) -> Result<T> {
    let sampler = scene.sample("app=moving").await?;
    let annotations = json!({"metadata": {"annotations": {"step": step.to_string()}}});
    scene.patch::<DaemonSet>("moving", &json!({"spec": {"template": annotations}})).await?;
    scene
        .wait_until("the update is in its middle", DEADLINE, async || {
            let moving: DaemonSet = scene.fetch("moving").await?;
            let status = moving.status.unwrap_or_default();
            let updated = status.updated_number_scheduled.unwrap_or(0);
            let is_seen = status.observed_generation == moving.metadata.generation;
            ensure!(is_seen && (5..41).contains(&updated), "{status:?}");
            Ok(())
        })
        .await?;
    let done = meanwhile().await?;
    scene.covered("moving", COVERED).await?;
    let seen = sampler.finish(scene).await?;
    let counts = (seen.pods.len(), seen.most_on_a_node);
    ensure!(counts == (100, 1), "{counts:?} instead of fifty old pods and fifty new ones, one at a time");
    Ok(done)
}

#[test]
fn a_daemon_set_changes_hands_in_the_middle_of_a_rolling_update_and_back() -> Result<()> {
    let options = ClusterOptions { nodes: NODES, ..ClusterOptions::with_controller_manager() };
    with_cluster(options, async |scene| {
        let rest = ControllerManager::without([OPERATOR].map(upstream_controller));
        let moves = scene.beside("moves").await?;
        let mut moving = daemon_set("moving", &json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 10}}}));
        moving["spec"]["template"]["metadata"]["annotations"] =
            json!({"pods.e2e/becomes": "ready-later", "pods.e2e/after": "300ms"});
        moves.apply(&moving).await?;
        finish(scene, "web").await?;
        moves.covered("moving", COVERED).await?;
        let finished = versions(scene).await?;

        let mut operators = roll(&moves, 2, async || {
            scene.cluster.stop_controller_manager().await?;
            scene.cluster.start_controller_manager(rest).await?;
            start_operators(&scene.cluster, [OPERATOR]).await
        })
        .await?;
        assert_eq!(versions(scene).await?, finished, "the operator wrote what needed no write");

        finish(scene, "own").await?;
        let finished = versions(scene).await?;
        roll(&moves, 3, async || {
            for operator in &mut operators {
                operator.terminate().await?;
            }
            scene.cluster.stop_controller_manager().await?;
            scene.cluster.start_controller_manager(ControllerManager::all()).await
        })
        .await?;
        assert_eq!(versions(scene).await?, finished, "what the operator left was not what upstream expects");
        let revisions: Vec<ControllerRevision> = moves.list("app=moving").await?;
        assert_eq!(revisions.len(), 3, "one revision a template, whoever made it");
        Ok(())
    })
}
