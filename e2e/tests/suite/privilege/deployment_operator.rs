//! A Deployment's life: rolled out, undone, cleaned up, released, orphaned, adopted; and recreated as on an older server.

use anyhow::{Result, ensure};
use e2e::rbac::{Action, Usage};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;
use serde_json::json;

use super::relabel;
use crate::support::{DEADLINE, Scene, deployment};

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator", "replicaset-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let mut web = deployment("web", 3);
    // Too large for a cache: its rollback reads the ReplicaSet.
    web["spec"]["template"]["metadata"]["annotations"] = json!({"large": "x".repeat(64 * 1024)});
    scene.apply(&web).await?;
    scene.rolled_out("web").await?;
    scene.kubectl("set env deployment/web STEP=2").await?;
    scene.rolled_out("web").await?;
    scene.kubectl("annotate deployment/web deprecated.deployment.rollback.to=1").await?;
    scene
        .wait_until("the rollback is under way", DEADLINE, async || {
            let web: Deployment = scene.fetch("web").await?;
            ensure!(!web.annotations().contains_key("deprecated.deployment.rollback.to"), "still asked for");
            Ok(())
        })
        .await?;
    scene.rolled_out("web").await?;
    scene.patch::<Deployment>("web", &json!({"spec": {"revisionHistoryLimit": 0}})).await?;
    // The same twice: the second time its event is counted up.
    for replicas in [5, 3, 5] {
        scene.kubectl(&format!("scale deployment/web --replicas={replicas}")).await?;
        scene.rolled_out("web").await?;
    }
    let set = scene
        .wait_until("the old ReplicaSet is removed", DEADLINE, async || {
            let mut sets: Vec<ReplicaSet> = scene.list("app=web").await?;
            ensure!(sets.len() == 1, "{} ReplicaSets", sets.len());
            Ok(sets.remove(0))
        })
        .await?;
    relabel::<ReplicaSet>(scene, &set.name_any(), "other").await?;
    scene.rolled_out("web").await?;
    scene.kubectl("delete deployment/web --cascade=orphan").await?;
    scene.apply(&web).await?;
    scene.rolled_out("web").await?;
    wait_for_a_pod_that_no_status_tells_of(scene).await
}

/// Only an older server's ReplicaSets do not say how many pods terminate. Here the replicaset-operator says so again as soon
/// as it is taken away, so that is done until the pods were listed in between.
async fn wait_for_a_pod_that_no_status_tells_of(scene: &Scene) -> Result<()> {
    let mut held = deployment("held", 1);
    held["spec"]["strategy"] = json!({"type": "Recreate"});
    held["spec"]["template"]["metadata"]["annotations"] = json!({"pods.e2e/goes": "never"});
    scene.apply(&held).await?;
    scene.rolled_out("held").await?;
    let old = scene.list::<ReplicaSet>("app=held").await?.remove(0).name_any();
    scene.kubectl("set env deployment/held STEP=2").await?;
    scene
        .wait_until("the old pod is to go", DEADLINE, async || {
            let status = scene.fetch::<ReplicaSet>(&old).await?.status.unwrap_or_default();
            ensure!((status.replicas, status.terminating_replicas) == (0, Some(1)), "{status:?}");
            Ok(())
        })
        .await?;
    let list = Action { group: String::new(), resource: "pods".to_owned(), verb: "list".to_owned() };
    scene
        .wait_until("pods are listed", DEADLINE, async || {
            scene.patch_status::<ReplicaSet>(&old, &json!({"status": {"terminatingReplicas": null}})).await?;
            let usage = Usage::read(&std::fs::read_to_string(scene.cluster.audit_log()?)?)?;
            ensure!(usage.shows("deployment-operator", &list), "not yet");
            Ok(())
        })
        .await?;
    scene.kubectl("delete pods --selector=app=held --force --grace-period=0").await?;
    scene.rolled_out("held").await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.patch_status::<Deployment>("web-1", &json!({"status": {"updatedReplicas": 0}})).await?;
    Ok(format!("patch deployments.apps/status {}/web-1: status.updatedReplicas: ", scene.namespace))
}
