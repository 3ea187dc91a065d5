//! Up, down, and in the middle of a rollout.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

use super::{observed, pods, sizes};
use crate::support::{DEADLINE, Scene, deployment, on_shared_cluster};

#[test]
fn scaling_up_and_down_keeps_the_pods_that_stay() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&deployment("web", 4)).await?;
        scene.rolled_out("web").await?;
        let four = pods(scene, "web").await?;
        scene.kubectl("scale deployment/web --replicas=12").await?;
        scene.rolled_out("web").await?;
        let twelve = pods(scene, "web").await?;
        assert_eq!(twelve.len(), 12);
        assert!(four.iter().all(|pod| twelve.contains(pod)), "pods were replaced");

        scene.kubectl("scale deployment/web --replicas=3").await?;
        let three = scene
            .wait_until("three pods", DEADLINE, async || {
                let three = pods(scene, "web").await?;
                ensure!(three.len() == 3, "{} pods", three.len());
                Ok(three)
            })
            .await?;
        assert!(three.iter().all(|pod| twelve.contains(pod)), "pods were replaced");
        assert_eq!(sizes(scene, "web").await?, [(1, 3)], "one template, one ReplicaSet");

        scene.kubectl("scale deployment/web --replicas=0").await?;
        scene
            .wait_until("no pods", DEADLINE, async || {
                let status = observed(scene, "web").await?.status.unwrap_or_default();
                ensure!(status.replicas.unwrap_or(0) == 0, "{:?} pods", status.replicas);
                Ok(())
            })
            .await
    })
}

/// A Deployment of ten in the middle of a rollout: eight old pods, and five new ones that never get ready. The numbers are
/// those of the documentation on proportional scaling.
async fn stuck_at_eight_and_five(scene: &Scene) -> Result<()> {
    let mut web = deployment("web", 10);
    web["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 3, "maxUnavailable": 2});
    scene.apply(&web).await?;
    scene.rolled_out("web").await?;
    let stuck = json!({"spec": {"template": {
        "metadata": {"annotations": {"pods.e2e/becomes": "never-ready"}},
        "spec": {"containers": [{"name": "main", "image": "registry.invalid/none:1"}]},
    }}});
    scene.patch::<Deployment>("web", &stuck).await?;
    sized(scene, &[(1, 8), (2, 5)]).await
}

async fn sized(scene: &Scene, expected: &[(i64, i32)]) -> Result<()> {
    scene
        .wait_until("the ReplicaSets have their sizes", DEADLINE, async || {
            let sizes = sizes(scene, "web").await?;
            ensure!(sizes == expected, "{sizes:?} instead of {expected:?}");
            observed(scene, "web").await.map(drop)
        })
        .await
}

#[test]
fn scaling_in_the_middle_of_a_rollout_is_proportional() -> Result<()> {
    on_shared_cluster(async |scene| {
        stuck_at_eight_and_five(scene).await?;
        scene.kubectl("scale deployment/web --replicas=15").await?;
        sized(scene, &[(1, 11), (2, 7)]).await
    })
}

#[test]
fn scaling_a_rollout_that_is_paused_is_proportional() -> Result<()> {
    on_shared_cluster(async |scene| {
        stuck_at_eight_and_five(scene).await?;
        scene.kubectl("rollout pause deployment/web").await?;
        scene.kubectl("scale deployment/web --replicas=15").await?;
        sized(scene, &[(1, 11), (2, 7)]).await?;
        scene.kubectl("scale deployment/web --replicas=5").await?;
        scene
            .wait_until("it is as small as it may be", DEADLINE, async || {
                let sizes = sizes(scene, "web").await?;
                let sum: i32 = sizes.iter().map(|(_, size)| size).sum();
                ensure!(sum == 8 && sizes.iter().all(|(_, size)| *size > 0), "{sizes:?}");
                Ok(())
            })
            .await
    })
}
