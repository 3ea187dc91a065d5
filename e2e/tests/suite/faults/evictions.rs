//! Evictions while the operator that counts pods for a budget does not see them go.
//!
//! Left out: storms while it sees everything, which the suite's `disruption` is about.

use anyhow::{Result, ensure};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::json;

use super::with_operators;
use crate::disruption::{allows, budget, living, pod, status, storm};
use crate::support::{DEADLINE, Scene};

/// Two of the three pods must stay, whoever asks how often.
async fn storm_takes_one(scene: &Scene) -> Result<()> {
    storm(scene, &living(scene, "calm").await?).await;
    let living = living(scene, "calm").await?;
    ensure!(living.len() == 2, "{living:?}");
    Ok(())
}

#[test]
fn a_storm_of_evictions_takes_no_second_pod_while_pods_are_not_seen() -> Result<()> {
    with_operators(["disruption-operator"], async |scene, [behind]| {
        for name in ["a", "b", "c"] {
            scene.apply(&pod(name, "calm")).await?;
        }
        scene.apply(&budget("calm", &json!({"minAvailable": 2}))).await?;
        allows(scene, "calm", 1, 3).await?;
        behind.proxy.freeze_watches("**/pods");
        storm_takes_one(scene).await?;
        // Each of these asks for a sync, and what the operator knows are three pods that are well.
        for look in ["1", "2", "3"] {
            let labels = json!({"metadata": {"labels": {"look": look}}});
            scene.patch::<PodDisruptionBudget>("calm", &labels).await?;
            storm_takes_one(scene).await?;
        }
        scene
            .wait_until("the evicted pod counts no more, seen or not", DEADLINE, async || {
                storm_takes_one(scene).await?;
                let status = status(scene, "calm").await?;
                ensure!((status.current_healthy, status.expected_pods) == (Some(2), Some(3)), "{status:?}");
                Ok(())
            })
            .await?;
        behind.proxy.thaw_watches();
        allows(scene, "calm", 0, 2).await?;
        storm_takes_one(scene).await
    })
}
