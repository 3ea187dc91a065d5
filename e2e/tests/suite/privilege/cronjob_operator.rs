//! A CronJob that clears away its Jobs that are done, and has lost track of one that runs.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Event;
use serde_json::json;

use crate::batch;
use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator", "job-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let one = batch::job("often", 1, 1);
    let often = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"},
        "spec": {
            "schedule": "@every 2s",
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 0,
            "jobTemplate": {"spec": one["spec"]},
        },
    });
    scene.apply(&often).await?;
    scene.told("SuccessfulDelete").await?;
    scene
        .wait_until("a Job of the same name came again, and its event is counted up", DEADLINE, async || {
            let most = scene.events("SuccessfulCreate").await?.iter().filter_map(of_cron_job).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    let running = json!({"spec": {"jobTemplate": {"spec": batch::running(one)["spec"]}}});
    scene.patch::<CronJob>("often", &running).await?;
    scene
        .wait_until("a Job that does not end", DEADLINE, async || {
            let jobs: Vec<Job> = scene.list("").await?;
            let annotations =
                jobs.iter().filter_map(|job| job.spec.as_ref()?.template.metadata.as_ref()?.annotations.as_ref());
            let does_not_end =
                |given: &BTreeMap<String, String>| given.get("pods.e2e/becomes").is_some_and(|it| it == "running");
            ensure!(annotations.clone().any(does_not_end), "{:?}", annotations.collect::<Vec<_>>());
            Ok(())
        })
        .await?;
    scene.patch::<CronJob>("often", &json!({"spec": {"suspend": true}})).await?;
    let reference = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "lost", "namespace": scene.namespace,
        "uid": "00000000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("often", &json!({"status": {"active": [reference]}})).await?;
    scene.told("MissingJob").await?;
    scene.told("UnexpectedJob").await.map(drop)
}

fn of_cron_job(event: &Event) -> Option<i32> {
    event.count.filter(|_| event.involved_object.kind.as_deref() == Some("CronJob"))
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let stranger = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "namespace": scene.namespace,
        "uid": "7d0f0000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("cron-0", &json!({"status": {"active": [stranger]}})).await?;
    Ok(format!("patch cronjobs.batch/status {}/cron-0: status.active", scene.namespace))
}
