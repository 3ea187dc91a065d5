//! A CronJob that replaces its Jobs, and has lost track of them.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::CronJob;
use serde_json::json;

use crate::batch;
use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator", "job-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    for day in 1..=2 {
        let often = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"},
            "spec": {
                "schedule": format!("0 0 {day} 1 *"),
                "concurrencyPolicy": "Replace",
                "jobTemplate": {"spec": batch::running(batch::job("often", 1, 1))["spec"]},
            },
        });
        scene.apply(&often).await?;
        let missed = json!({"status": {"lastScheduleTime": "2020-02-20T00:00:00Z"}});
        scene.patch_status::<CronJob>("often", &missed).await?;
        scene
            .wait_until(&format!("the run of day {day} is active"), DEADLINE, async || {
                let status = scene.fetch::<CronJob>("often").await?.status.unwrap_or_default();
                let ran = status.last_schedule_time.map(|time| time.0.strftime("%d").to_string());
                ensure!(ran == Some(format!("0{day}")), "{ran:?}");
                Ok(())
            })
            .await?;
    }
    let reference = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "lost", "namespace": scene.namespace,
        "uid": "00000000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("often", &json!({"status": {"active": [reference]}})).await?;
    scene.told("MissingJob").await?;
    scene.told("UnexpectedJob").await.map(drop)
}
