//! The metrics of the operators of Jobs, under upstream's names.

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::Operator;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use serde_json::json;

use super::{completed, exiting, failed, indexed, job, with};
use crate::support::clusters::metrics_token;
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const OPERATORS: [&str; 3] = ["job-operator", "cronjob-operator", "ttl-after-finished-operator"];

/// Waits until an operator's metrics have these lines.
async fn counts(scene: &Scene, operator: &Operator, token: &str, expected: &[&str]) -> Result<()> {
    scene
        .wait_until("all is counted", DEADLINE, async || {
            let (_, text) = operator.get("/metrics", Some(token)).await?;
            for line in expected {
                ensure!(text.lines().any(|it| it == *line), "no line {line} in:\n{text}");
            }
            Ok(())
        })
        .await
}

#[test]
fn jobs_their_pods_and_their_indexes_are_counted() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let operators = start_operators(&scene.cluster, OPERATORS).await?;
        let [jobs, cron_jobs, ttl] = operators.as_slice() else { anyhow::bail!("{} operators", operators.len()) };
        let token = metrics_token(scene).await?;
        scene.apply(&with(job("external", 1, 1), &json!({"managedBy": "example.com/queue"}))).await?;
        scene.apply(&indexed("pi", 3, 3)).await?;
        let rules = json!([{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}}]);
        scene.apply(&exiting(with(job("policy", 1, 2), &json!({"podFailurePolicy": {"rules": rules}})), 3)).await?;
        completed(scene, "pi").await?;
        failed(scene, "policy", "PodFailurePolicy").await?;
        let expected = [
            r#"job_controller_jobs_finished_total{completion_mode="Indexed",result="succeeded",reason="CompletionsReached"} 1"#,
            r#"job_controller_jobs_finished_total{completion_mode="NonIndexed",result="failed",reason="PodFailurePolicy"} 1"#,
            r#"job_controller_job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 3"#,
            r#"job_controller_job_pods_finished_total{completion_mode="NonIndexed",result="failed"} 1"#,
            r#"job_controller_job_finished_indexes_total{status="succeeded",backoffLimit="global"} 3"#,
            r#"job_controller_job_pods_creation_total{reason="new",status="succeeded"} 4"#,
            r#"job_controller_pod_failures_handled_by_failure_policy_total{action="FailJob"} 1"#,
            r#"job_controller_terminated_pods_tracking_finalizer_total{event="add"} 4"#,
            r#"job_controller_terminated_pods_tracking_finalizer_total{event="delete"} 4"#,
            r#"job_controller_jobs_by_external_controller_total{controller_name="example.com/queue"} 1"#,
        ];
        counts(scene, jobs, &token, &expected).await?;
        let (_, text) = jobs.get("/metrics", Some(&token)).await?;
        for metric in ["job_controller_job_syncs_total", "job_controller_job_sync_duration_seconds_count"] {
            let line = format!("{metric}{{completion_mode=\"Indexed\",result=\"success\",action=\"pods_created\"}} ");
            let count = text.lines().find_map(|it| it.strip_prefix(&line)).context(line.clone())?;
            assert!(count.parse::<u32>()? > 0, "{line}{count}");
        }

        scene.patch::<Job>("pi", &json!({"spec": {"ttlSecondsAfterFinished": 0}})).await?;
        let deleted = "ttl_after_finished_controller_job_deletion_duration_seconds_count 1";
        counts(scene, ttl, &token, &[deleted]).await?;
        let template = json!({"spec": job("x", 1, 1)["spec"]});
        scene
            .apply(&json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "yearly"},
                "spec": {"schedule": "0 0 1 1 *", "jobTemplate": template},
            }))
            .await?;
        let missed = json!({"status": {"lastScheduleTime": "2020-02-01T00:00:00Z"}});
        scene.patch_status::<CronJob>("yearly", &missed).await?;
        let created = "cronjob_controller_job_creation_skew_duration_seconds_count 1";
        counts(scene, cron_jobs, &token, &[created]).await
    })
}
