//! Finished Jobs whose time to live is over go, with their pods.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{completed, edit, exiting, job, with};
use crate::support::{DEADLINE, Scene, on_shared_cluster};

fn living(name: &str, seconds: impl Into<Value>) -> Value {
    with(job(name, 1, 1), &json!({"ttlSecondsAfterFinished": seconds.into()}))
}

async fn gone(scene: &Scene, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} and its pods are gone"), DEADLINE, async || {
            let pods: Vec<Pod> = scene.list(&format!("app={name}")).await?;
            let job = scene.api::<Job>().get_opt(name).await?;
            ensure!(job.is_none() && pods.is_empty(), "{} pods, {job:?}", pods.len());
            Ok(())
        })
        .await
}

#[test]
fn a_finished_job_goes_when_its_time_is_over_however_it_ended() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&living("kept", Value::Null)).await?;
        scene.apply(&living("extended", 6)).await?;
        scene.apply(&living("shortened", 3600)).await?;
        for name in ["kept", "extended", "shortened"] {
            completed(scene, name).await?;
        }
        edit(scene, "extended", &json!({"ttlSecondsAfterFinished": 3600})).await?;
        edit(scene, "shortened", &json!({"ttlSecondsAfterFinished": 0})).await?;
        gone(scene, "shortened").await?;
        let failing = with(living("failed", 6), &json!({"backoffLimit": 0}));
        scene.apply(&exiting(failing, 1)).await?;
        gone(scene, "failed").await?;
        // It had as long to live as this one, and less of it left.
        for name in ["kept", "extended"] {
            scene.fetch::<Job>(name).await?;
            let pods: Vec<Pod> = scene.list(&format!("app={name}")).await?;
            assert_eq!(pods.len(), 1, "{name}");
        }
        Ok(())
    })
}
