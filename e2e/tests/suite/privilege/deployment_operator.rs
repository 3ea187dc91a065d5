//! A Deployment's life: rolled out, undone, cleaned up, released, orphaned, adopted.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;
use serde_json::json;

use super::relabel;
use crate::support::{DEADLINE, Scene, deployment};

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator", "replicaset-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let web = deployment("web", 3);
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
    scene.rolled_out("web").await
}
