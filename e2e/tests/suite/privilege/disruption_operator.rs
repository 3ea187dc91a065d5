//! Budgets of pods whose owners are of several kinds, a pod that is evicted, and one that nothing has ended after all.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::EvictParams;
use serde_json::json;

use crate::disruption::{allows, budget, pod, stale_target};
use crate::support::{DEADLINE, Scene, deployment, template};

pub(super) const NEEDS: &[&str] = &["deployment-operator", "replicaset-operator", "replicationcontroller-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    scene.apply(&budget("empty", &json!({"minAvailable": 1}))).await?;
    scene.told("NoPods").await?;
    scene.apply(&deployment("web", 2)).await?;
    scene.rolled_out("web").await?;
    scene.apply(&budget("web", &json!({"maxUnavailable": 1}))).await?;
    allows(scene, "web", 1, 2).await?;
    let controller = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "old"},
        "spec": {"replicas": 2, "selector": {"app": "old"}, "template": template("old")},
    });
    scene.apply(&controller).await?;
    scene.apply(&budget("old", &json!({"minAvailable": "50%"}))).await?;
    allows(scene, "old", 1, 2).await?;
    let pods: Vec<Pod> = scene.list("app=old").await?;
    let name = pods.first().and_then(|pod| pod.metadata.name.clone()).context("it has no pod")?;
    scene.api::<Pod>().evict(&name, &EvictParams::default()).await?;
    scene.gone::<Pod>(&name).await?;
    allows(scene, "old", 1, 2).await?;
    scene.apply(&pod("lasting", "web-too")).await?;
    scene.apply(&budget("web-too", &json!({"minAvailable": 0}))).await?;
    allows(scene, "web-too", 1, 1).await?;
    stale_target(scene, "lasting").await?;
    scene
        .wait_until("the condition is taken back", DEADLINE, async || {
            let pod: Pod = scene.fetch("lasting").await?;
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            let condition = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget");
            ensure!(condition.is_some_and(|condition| condition.status == "False"), "{condition:?}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.patch_status::<PodDisruptionBudget>("web-2", &json!({"status": {"currentHealthy": 0}})).await?;
    Ok(format!("patch poddisruptionbudgets.policy/status {}/web-2: status.currentHealthy: ", scene.namespace))
}
