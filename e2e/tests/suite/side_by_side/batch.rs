//! Jobs and CronJobs: those that succeeded, that failed in every way, that are suspended, and their pods.
//!
//! Left out: which of several pods comes first where both may, so each Job here leaves no choice.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{all, compare, mask, without_names};
use crate::batch::{end, exiting, index, indexed, job, pods, running, status, with};
use crate::support::{DEADLINE, Scene};

const CONTROLLERS: [&str; 2] = ["job-controller", "cronjob-controller"];

/// One pod of many that a failure policy ends the Job for.
fn policy() -> Value {
    json!({"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]})
}

/// Every Job of this test, and the condition in which it stays.
fn jobs() -> Vec<(Value, &'static str)> {
    let none = json!({"backoffLimit": 0});
    let per_index = json!({"backoffLimitPerIndex": 0});
    let too_many = json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 0});
    vec![
        (job("plain", 2, 5), "Complete"),
        (job("queue", 2, None), "Complete"),
        (indexed("indexed", 2, 4), "Complete"),
        (indexed("nothing", 2, 0), "Complete"),
        (
            with(running(indexed("leader", 2, 2)), &json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}})),
            "Complete",
        ),
        (with(running(indexed("partly", 2, 2)), &per_index), "Failed"),
        (with(running(indexed("hardly", 3, 3)), &too_many), "Failed"),
        (exiting(with(job("failed", 1, 2), &none), 1), "Failed"),
        (exiting(with(job("policy", 1, 2), &json!({"podFailurePolicy": policy()})), 42), "Failed"),
        (running(with(job("slow", 2, 2), &json!({"activeDeadlineSeconds": 1}))), "Failed"),
        (with(job("suspended", 2, 2), &json!({"suspend": true})), "Suspended"),
    ]
}

/// The exit codes, by index, with which the kubelet ends the pods of these Jobs.
const EXITS: [(&str, &[(i32, i32)]); 3] = [("leader", &[(0, 0)]), ("partly", &[(1, 1), (0, 0)]), ("hardly", &[(0, 1)])];

pub(crate) async fn live(scene: &Scene) -> Result<()> {
    for (mut job, _) in jobs() {
        // A volume of a token has a random name.
        job["spec"]["template"]["spec"]["automountServiceAccountToken"] = json!(false);
        scene.apply(&job).await?;
    }
    for (name, exits) in EXITS {
        for (at, code) in exits {
            let pod = runs(scene, name, *at).await?;
            end(scene, &pod, *code).await?;
            counted(scene, name, *at).await?;
        }
    }
    for (job, condition) in jobs() {
        let name = job["metadata"]["name"].as_str().unwrap_or_default();
        scene.kubectl(&format!("wait --for=condition={condition} job/{name} --timeout=60s")).await?;
    }
    resume(scene).await?;
    run_cron_job(scene).await
}

/// Waits until the whole Job runs, and gives the pod of this index.
async fn runs(scene: &Scene, job: &str, at: i32) -> Result<Pod> {
    scene
        .wait_until(&format!("{job} runs"), DEADLINE, async || {
            let status = status(scene, job).await?;
            ensure!(status.active == status.ready && status.active > Some(0), "{status:?}");
            let mut pods = pods(scene, job).await?;
            pods.retain(|pod| index(pod) == at);
            ensure!(pods.len() == 1, "{} pods", pods.len());
            Ok(pods.remove(0))
        })
        .await
}

async fn counted(scene: &Scene, job: &str, at: i32) -> Result<()> {
    scene
        .wait_until(&format!("index {at} of {job} is counted"), DEADLINE, async || {
            let status = status(scene, job).await?;
            let indexes =
                [status.completed_indexes.as_deref(), status.failed_indexes.as_deref()].map(Option::unwrap_or_default);
            ensure!(indexes.iter().any(|indexes| indexes.contains(&at.to_string())), "{status:?}");
            Ok(())
        })
        .await
}

/// Resumes the suspended Job, and suspends it again.
async fn resume(scene: &Scene) -> Result<()> {
    scene.patch::<Job>("suspended", &json!({"spec": {"suspend": false, "parallelism": 0}})).await?;
    scene.told("Resumed").await?;
    scene.patch::<Job>("suspended", &json!({"spec": {"suspend": true}})).await?;
    scene
        .wait_until("it is suspended again", DEADLINE, async || {
            let told: i32 = scene.events("Suspended").await?.iter().filter_map(|event| event.count).sum();
            ensure!(told == 2, "told {told} times");
            Ok(())
        })
        .await
}

async fn run_cron_job(scene: &Scene) -> Result<()> {
    let mut template = job("x", 1, 1);
    template["spec"]["template"]["spec"]["automountServiceAccountToken"] = json!(false);
    scene
        .apply(&json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "yearly"},
            "spec": {
                "schedule": "30 4 2 1 *", "timeZone": "America/New_York", "concurrencyPolicy": "Forbid",
                "jobTemplate": {"metadata": {"labels": {"run": "yearly"}, "annotations": {"kept": "yes"}},
                    "spec": template["spec"]},
            },
        }))
        .await?;
    let missed = json!({"status": {"lastScheduleTime": "2020-02-01T00:00:00Z"}});
    scene.patch_status::<CronJob>("yearly", &missed).await?;
    scene.told("SawCompletedJob").await.map(drop)
}

/// A line for each of what is left.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    let mut objects = all::<Job>(scene).await?;
    objects.extend(all::<CronJob>(scene).await?);
    let pods: Vec<Pod> = scene.list("").await?;
    for pod in &pods {
        let mut shown = serde_json::to_value(pod)?;
        mask(&mut shown);
        shown["metadata"]["name"] = json!("?");
        shown.as_object_mut().map(|fields| fields.remove("status"));
        objects.push(shown);
    }
    let mut lines = Vec::new();
    for object in objects {
        let line = serde_json::to_string_pretty(&object)?;
        lines.push(without_names(&line, scene, &pods));
    }
    lines.sort();
    Ok(lines)
}

#[test]
fn the_operators_leave_of_jobs_what_upstream_leaves() -> Result<()> {
    compare(&live, &left, &CONTROLLERS)
}
