//! Budgets of numbers and of shares: of Deployments' pods, one of which is evicted, of a pod of nobody, of a Job, which
//! has no scale, and of nothing.
//!
//! Left out: budgets that share a pod, of which upstream counts one; and how often a budget is told of beyond the second
//! time, for which each life waits.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::EvictParams;
use serde_json::json;

use super::{all, compare};
use crate::batch;
use crate::disruption::{allows, budget, living, pod};
use crate::support::objects::is_ready;
use crate::support::{DEADLINE, Scene, deployment};

async fn live(scene: &Scene) -> Result<()> {
    let budgets = [
        ("number", json!({"minAvailable": 2}), 1),
        ("share", json!({"minAvailable": "50%"}), 1),
        ("missing", json!({"maxUnavailable": 1}), 1),
        ("most", json!({"maxUnavailable": "34%"}), 2),
        ("none", json!({"minAvailable": "100%"}), 0),
    ];
    for (name, _, _) in &budgets {
        scene.apply(&deployment(name, 3)).await?;
    }
    scene.apply(&pod("alone", "alone")).await?;
    scene.apply(&batch::running(batch::job("crew", 1, 1))).await?;
    // Budgets come to pods that are there, or they would tell that there are none.
    for (name, limit, allowed) in &budgets {
        scene.rolled_out(name).await?;
        scene.apply(&budget(name, limit)).await?;
        allows(scene, name, *allowed, 3).await?;
    }
    let pods = living(scene, "number").await?;
    scene.api::<Pod>().evict(&pods[0], &EvictParams::default()).await?;
    scene.gone::<Pod>(&pods[0]).await?;
    scene.rolled_out("number").await?;
    allows(scene, "number", 1, 3).await?;

    for app in ["alone", "crew"] {
        scene
            .wait_until(&format!("the pod of {app} is ready"), DEADLINE, async || {
                let pods: Vec<Pod> = scene.list(&format!("app={app}")).await?;
                ensure!(pods.len() == 1 && is_ready(&pods[0]), "{} pods", pods.len());
                Ok(())
            })
            .await?;
    }
    for (name, reason) in [("alone", "UnmanagedPods"), ("crew", "CalculateExpectedPodCountFailed"), ("empty", "NoPods")]
    {
        scene.apply(&budget(name, &json!({"maxUnavailable": 1}))).await?;
        scene.told(reason).await?;
        // Upstream tells of it again once it sees its own status; here only something new is told again.
        scene.patch::<PodDisruptionBudget>(name, &json!({"spec": {"maxUnavailable": 2}})).await?;
        told_again(scene, reason).await?;
    }
    Ok(())
}

/// Waits until an event of this reason has been posted more than once.
async fn told_again(scene: &Scene, reason: &str) -> Result<()> {
    scene
        .wait_until(&format!("{reason} is told again"), DEADLINE, async || {
            let events = scene.events(reason).await?;
            ensure!(events.iter().any(|event| event.count > Some(1)), "{events:?}");
            Ok(())
        })
        .await
}

/// A line for each of what is left.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    let mut lines = super::left(scene).await?;
    for budget in all::<PodDisruptionBudget>(scene).await? {
        lines.push(serde_json::to_string_pretty(&budget)?);
    }
    Ok(lines)
}

#[test]
fn the_operator_leaves_of_budgets_what_upstream_leaves() -> Result<()> {
    compare(&live, &left, &["controllermanager", "deployment-controller", "replicaset-controller"])
}
