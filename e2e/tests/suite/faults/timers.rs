//! CronJobs and times to live while their operators are killed, blind or overtaken by an edit: a run is started once, and a
//! Job is deleted only as it is now.

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::{Method, StatusCode};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::ResourceExt;
use serde_json::json;

use super::with_operators;
use crate::batch::cronjob::reschedule;
use crate::batch::{job, with};
use crate::support::behind::{Behind, Gate};
use crate::support::{DEADLINE, Scene, uid};

const CRON_JOB: &str = "cronjob-operator";
const TTL: &str = "ttl-after-finished-operator";

/// A CronJob whose latest time has come long ago.
async fn overdue(scene: &Scene) -> Result<()> {
    let template = json!({"metadata": {"labels": {"run": "yearly"}}, "spec": job("x", 1, 1)["spec"]});
    scene
        .apply(&json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "yearly"},
            "spec": {"schedule": "30 4 2 1 *", "concurrencyPolicy": "Forbid", "jobTemplate": template},
        }))
        .await?;
    let missed = json!({"status": {"lastScheduleTime": "2020-02-01T00:00:00Z"}});
    scene.patch_status::<CronJob>("yearly", &missed).await.map(drop)
}

#[test]
fn a_run_is_started_once_when_its_operator_is_killed_after_each_write() -> Result<()> {
    with_operators([CRON_JOB], async |scene, [mut victim]| {
        let (created, listed) = (Gate::new(), Gate::new());
        victim.proxy.add(Rule::new(created.after()).method(Method::POST).path("**/jobs"));
        overdue(scene).await?;
        created.reached().await;
        victim.kill_and_restart()?;
        victim.proxy.add(Rule::new(listed.after()).method(Method::PATCH).path("**/cronjobs/yearly/status"));
        listed.reached().await;
        victim.kill_and_restart()?;
        victim.operator.wait_ready().await?;
        // Something to look at, for a process that has seen neither answer.
        reschedule(scene, &["yearly"]).await?;
        scene.told("JobAlreadyActive").await?;

        let jobs: Vec<Job> = scene.list("run=yearly").await?;
        assert_eq!(jobs.len(), 1, "it was started twice");
        let status = scene.fetch::<CronJob>("yearly").await?.status.unwrap_or_default();
        let active: Vec<_> = status.active.iter().flatten().map(|job| job.uid.clone().unwrap_or_default()).collect();
        assert_eq!(active, [uid(&jobs[0])]);
        let answers: Vec<_> = victim.proxy.writes("**/jobs").iter().map(|write| write.upstream_status).collect();
        assert_eq!(answers, [Some(StatusCode::CREATED), Some(StatusCode::CONFLICT)], "the name is the lock");
        Ok(())
    })
}

/// Upstream: `deleteJob` and `syncCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
#[test]
fn a_job_that_is_over_leaves_the_status_and_is_told_so_where_it_cannot_be_deleted() -> Result<()> {
    with_operators([CRON_JOB], async |scene, [operator]| {
        overdue(scene).await?;
        scene.told("SuccessfulCreate").await?;
        let job = scene.list::<Job>("run=yearly").await?.remove(0).name_any();
        operator.proxy.add(Rule::new(Action::reply(StatusCode::FORBIDDEN)).method(Method::DELETE).always());
        scene.patch::<CronJob>("yearly", &json!({"spec": {"successfulJobsHistoryLimit": 0}})).await?;
        complete(scene, &job).await?;
        scene.told("FailedDelete").await?;
        let message = format!("Saw completed job: {job}, condition: Complete");
        assert_eq!(scene.told("SawCompletedJob").await?[0].message.as_deref(), Some(&*message));
        scene
            .wait_until("the status lists it no more", DEADLINE, async || {
                let status = scene.fetch::<CronJob>("yearly").await?.status.unwrap_or_default();
                ensure!(status.active.is_none() && status.last_successful_time.is_some(), "{status:?}");
                Ok(())
            })
            .await?;
        operator.proxy.clear();
        scene.patch::<CronJob>("yearly", &json!({"spec": {"failedJobsHistoryLimit": 0}})).await?;
        scene.told("SuccessfulDelete").await.map(drop)
    })
}

/// A Job that is over, though nobody is at work here.
async fn over(scene: &Scene, name: &str) -> Result<()> {
    scene.apply(&with(job(name, 1, 1), &json!({"ttlSecondsAfterFinished": 0}))).await?;
    complete(scene, name).await
}

async fn complete(scene: &Scene, name: &str) -> Result<()> {
    let now = scene.fetch::<Job>(name).await?.metadata.creation_timestamp;
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": now});
    let status = json!({"status": {
        "startTime": now, "completionTime": now, "succeeded": 1, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {}, "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }});
    scene.patch_status::<Job>(name, &status).await.map(drop)
}

async fn live(scene: &Scene, name: &str, seconds: i32) -> Result<()> {
    let ttl = json!({"spec": {"ttlSecondsAfterFinished": seconds}});
    scene.patch::<Job>(name, &ttl).await.map(drop)
}

/// Waits until the Job's deletes were answered so.
async fn answered(scene: &Scene, operator: &Behind, name: &str, expected: &[StatusCode]) -> Result<()> {
    scene
        .wait_until("its deletes are answered", DEADLINE, async || {
            let writes = operator.proxy.writes(&format!("**/jobs/{name}"));
            let answers: Vec<_> = writes.iter().filter_map(|write| write.upstream_status).collect();
            ensure!(answers == expected, "{answers:?}");
            Ok(())
        })
        .await
}

#[test]
fn a_job_whose_life_is_made_longer_in_the_last_moment_is_kept() -> Result<()> {
    with_operators([TTL], async |scene, [operator]| {
        for (name, method) in [("before-it-is-read", Method::GET), ("after-it-was-read", Method::DELETE)] {
            let gate = Gate::new();
            operator.proxy.add(Rule::new(gate.before()).method(method).path(&format!("**/jobs/{name}")));
            over(scene, name).await?;
            gate.reached().await;
            live(scene, name, 3600).await?;
            gate.let_go();
        }
        answered(scene, &operator, "after-it-was-read", &[StatusCode::CONFLICT]).await?;
        for name in ["before-it-is-read", "after-it-was-read"] {
            let kept: Job = scene.fetch(name).await?;
            assert_eq!(kept.metadata.deletion_timestamp, None, "{name}");
            live(scene, name, 0).await?;
        }
        answered(scene, &operator, "before-it-is-read", &[StatusCode::OK]).await?;
        answered(scene, &operator, "after-it-was-read", &[StatusCode::CONFLICT, StatusCode::OK]).await?;
        let deleted: Job = scene.fetch("before-it-is-read").await?;
        assert_eq!(deleted.finalizers(), ["foregroundDeletion"], "its pods go first");
        Ok(())
    })
}
