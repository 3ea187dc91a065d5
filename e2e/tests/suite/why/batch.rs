//! Jobs that failed, wait or do nothing, and CronJobs that start none.
//!
//! Left out: a time zone that nobody knows, which the apiserver does not take.

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use k8s_openapi::api::batch::v1::CronJob;
use serde_json::{Value, json};

use super::{Row, becoming, play_family, row, with};
use crate::batch::cronjob::{cron_job, daily, due_since, minute};
use crate::batch::{behaving, exiting, indexed, job, running};
use crate::support::{DEADLINE, Scene};

#[test]
fn jobs_say_why_they_failed_or_do_nothing() -> Result<()> {
    play_family(&rows())
}

pub(super) fn rows() -> Vec<Row> {
    [failed(), waiting(), cron_jobs()].into_iter().flatten().collect()
}

fn failed() -> Vec<Row> {
    vec![
        row(
            "A Job reached its backoffLimit",
            "job/web",
            "web: failed: 1 pod failed (backoffLimit 0); last failure: container main exited with code 3 (Error)",
            |scene| {
                applied(scene, with(exiting(job("web", 1, 1), 3), &json!({"spec": {"backoffLimit": 0}}))).boxed_local()
            },
        ),
        row(
            "A Job exceeded its deadline",
            "job/web",
            "web: failed: not finished within 1 s (activeDeadlineSeconds)",
            |scene| {
                let late = with(running(job("web", 1, 1)), &json!({"spec": {"activeDeadlineSeconds": 1}}));
                applied(scene, late).boxed_local()
            },
        ),
        row(
            "A pod failure policy ended a Job",
            "job/web",
            "web: failed by its pod failure policy: Container main for pod */web-* failed with exit code 42 matching FailJob rule at index 0",
            |scene| {
                let codes = json!({"containerName": "main", "operator": "In", "values": [42]});
                let policy = json!({"rules": [{"action": "FailJob", "onExitCodes": codes}]});
                let ended = with(exiting(job("web", 1, 1), 42), &json!({"spec": {"podFailurePolicy": policy}}));
                applied(scene, ended).boxed_local()
            },
        ),
        row("Indexes of a Job failed", "job/web", "web: failed: indexes 0,1 failed", |scene| {
            let spec = json!({"backoffLimitPerIndex": 0});
            applied(scene, with(exiting(indexed("web", 2, 2), 1), &json!({"spec": spec}))).boxed_local()
        }),
        row(
            "A Job exceeded maxFailedIndexes",
            "job/web",
            "web: failed: more than 1 index failed: * (maxFailedIndexes)",
            |scene| {
                let spec = json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 1});
                applied(scene, with(exiting(indexed("web", 3, 3), 1), &json!({"spec": spec}))).boxed_local()
            },
        ),
    ]
}

fn waiting() -> Vec<Row> {
    vec![
        row(
            "A Job is suspended",
            "job/web",
            "web: suspended (spec.suspend): no pods run until it is resumed",
            |scene| applied(scene, with(job("web", 1, 1), &json!({"spec": {"suspend": true}}))).boxed_local(),
        ),
        row(
            "A Job is managed by another controller",
            "job/web",
            "web: managed by `e2e.example/queue` (spec.managedBy), not by job-operator",
            |scene| {
                applied(scene, with(job("web", 1, 1), &json!({"spec": {"managedBy": "e2e.example/queue"}})))
                    .boxed_local()
            },
        ),
        row(
            "A Job's pods keep failing",
            "job/web",
            "web: pods keep failing: * failed, backoffLimit 6, next retry in * s; last failure: container main exited with code 1 (Error)",
            |scene| applied(scene, exiting(job("web", 1, 1), 1)).boxed_local(),
        ),
        row(
            "A Job's pods are refused by a quota",
            "job/web",
            "web: 1 of 1 pod missing: Job web cannot create pods: quota `team` exceeded (pods 0/0); next retry in * s",
            |scene| {
                async move {
                    scene.limit_pods("team", 0).await?;
                    applied(scene, job("web", 1, 1)).await
                }
                .boxed_local()
            },
        ),
        row(
            "A Job's image does not exist",
            "job/web",
            "web: pod web-*: cannot pull image `busybox:1.37` (ImagePullBackOff)",
            |scene| {
                let becoming = becoming("never-started")["annotations"].clone();
                applied(scene, behaving(job("web", 1, 1), &becoming, "true")).boxed_local()
            },
        ),
        row(
            "A Job's pod is unschedulable",
            "job/web",
            "web: pod web-*: unschedulable: 0/* nodes are available: …",
            |scene| {
                let template = json!({"spec": {"nodeSelector": {"disk": "none"}}});
                applied(scene, with(job("web", 1, 1), &json!({"spec": {"template": template}}))).boxed_local()
            },
        ),
    ]
}

fn cron_jobs() -> Vec<Row> {
    vec![
        row("A CronJob is suspended", "cj/web", "web: suspended (spec.suspend): no Jobs are started", |scene| {
            let spec = json!({"spec": {"suspend": true}});
            applied(scene, with(cron_job("web", "Allow", &job("x", 1, 1)), &spec)).boxed_local()
        }),
        row(
            "A CronJob's last Job still runs",
            "cj/web",
            "web: waiting for job/web-* to finish (concurrencyPolicy: Forbid)",
            |scene| forbidden(scene).boxed_local(),
        ),
        row(
            "A CronJob missed its starting deadline",
            "cj/web",
            "web: missed its scheduled time by more than 60 s (startingDeadlineSeconds): due at *",
            |scene| {
                async move {
                    let late = with(
                        cron_job("web", "Allow", &job("x", 1, 1)),
                        &json!({"spec": {"startingDeadlineSeconds": 60}}),
                    );
                    let due = minute(5)?;
                    due_since(scene, &late, &daily(due), minute(6)?).await
                }
                .boxed_local()
            },
        ),
        row("A CronJob is never due", "cj/web", "web: invalid schedule `0 0 31 2 *`…", |scene| {
            let spec = json!({"spec": {"schedule": "0 0 31 2 *"}});
            applied(scene, with(cron_job("web", "Allow", &job("x", 1, 1)), &spec)).boxed_local()
        }),
    ]
}

async fn applied(scene: &Scene, object: Value) -> Result<()> {
    scene.apply(&object).await.map(drop)
}

/// Its Job of this minute runs, and then it is due again.
async fn forbidden(scene: &Scene) -> Result<()> {
    let before = minute(9)?;
    due_since(scene, &cron_job("web", "Forbid", &running(job("x", 1, 1))), "* * * * *", before).await?;
    scene
        .wait_until("a Job runs", DEADLINE, async || {
            let status = scene.fetch::<CronJob>("web").await?.status.context("no status")?;
            ensure!(status.active.is_some_and(|active| !active.is_empty()), "no Job is active");
            Ok(())
        })
        .await?;
    let again = json!({"status": {"lastScheduleTime": before.to_string()}});
    scene.patch_status::<CronJob>("web", &again).await.map(drop)
}
