//! A CronJob that replaces its Jobs, and has lost track of them.

use anyhow::Result;
use k8s_openapi::api::batch::v1::CronJob;
use serde_json::json;

use crate::batch;
use crate::support::Scene;

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator", "job-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let often = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"},
        "spec": {
            "schedule": "@every 2s",
            "concurrencyPolicy": "Replace",
            "jobTemplate": {"spec": batch::running(batch::job("often", 1, 1))["spec"]},
        },
    });
    scene.apply(&often).await?;
    scene.told("SuccessfulDelete").await?;
    scene.patch::<CronJob>("often", &json!({"spec": {"suspend": true}})).await?;
    let reference = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "lost", "namespace": scene.namespace,
        "uid": "00000000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("often", &json!({"status": {"active": [reference]}})).await?;
    scene.told("MissingJob").await?;
    scene.told("UnexpectedJob").await.map(drop)
}
