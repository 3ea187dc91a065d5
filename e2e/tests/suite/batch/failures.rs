//! Jobs that fail: how often their pods may, how long a replacement takes, and what ends a Job for good.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{
    completed, condition, end, exiting, failed, index, indexed, is_tracked, job, pods, run, running, says, with,
};
use crate::support::{DEADLINE, on_shared_cluster, without_kubelets};

fn created(pod: &Pod) -> Result<Timestamp> {
    Ok(pod.metadata.creation_timestamp.as_ref().context("a pod without a creationTimestamp")?.0)
}

#[test]
fn a_pod_that_failed_is_replaced_after_a_while_until_the_limit() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&exiting(with(job("pi", 1, 1), &json!({"backoffLimit": 1})), 3)).await?;
        let status = failed(scene, "pi", "BackoffLimitExceeded").await?;
        assert_eq!((status.succeeded, status.failed), (None, Some(2)));
        assert_eq!(status.completion_time, None);
        let message = "Job has reached the specified backoff limit";
        assert_eq!(condition(&status, "Failed").map(|(_, message)| message), Some(message));
        let shown = scene.kubectl("get job/pi --no-headers").await?;
        assert!(shown.contains("Failed") && shown.contains("0/1"), "{shown}");
        assert_eq!(scene.told("BackoffLimitExceeded").await?[0].message.as_deref(), Some(message));
        let mut times = pods(scene, "pi").await?.iter().map(created).collect::<Result<Vec<_>>>()?;
        times.sort_unstable();
        let waited = times[0].duration_until(times[1]).as_secs();
        // Whole seconds, and the first pod has run in between.
        assert!((9..20).contains(&waited), "the second pod came {waited} s after the first");
        Ok(())
    })
}

#[test]
fn restarts_in_place_count_as_failures_too() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut restarting = exiting(with(job("pi", 1, 1), &json!({"backoffLimit": 2})), 1);
        restarting["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
        scene.apply(&restarting).await?;
        let status = failed(scene, "pi", "BackoffLimitExceeded").await?;
        assert_eq!(status.failed, Some(1), "one pod was restarted in place, and fails with the Job");
        Ok(())
    })
}

#[test]
fn a_job_that_takes_too_long_fails_and_its_pods_go() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&running(with(job("slow", 2, 3), &json!({"activeDeadlineSeconds": 2})))).await?;
        run(scene, "slow", 2).await?;
        let status = failed(scene, "slow", "DeadlineExceeded").await?;
        let message = "Job was active longer than specified deadline";
        assert_eq!(condition(&status, "Failed").map(|(_, message)| message), Some(message));
        assert_eq!(status.failed, Some(2), "the pods that were cut short have failed");
        scene.told("DeadlineExceeded").await?;
        Ok(())
    })
}

#[test]
fn each_index_fails_by_itself() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&running(with(indexed("pi", 3, 3), &json!({"backoffLimitPerIndex": 0})))).await?;
        let pods = run(scene, "pi", 3).await?;
        end(scene, &pods[1], 1).await?;
        let status =
            says(scene, "pi", "index 1 has failed", |status| status.failed_indexes.as_deref() == Some("1")).await?;
        assert_eq!(status.active, Some(2), "the other indexes go on");
        end(scene, &pods[0], 0).await?;
        end(scene, &pods[2], 0).await?;
        let status = failed(scene, "pi", "FailedIndexes").await?;
        let indexes = (status.completed_indexes.as_deref(), status.failed_indexes.as_deref());
        assert_eq!(indexes, (Some("0,2"), Some("1")));
        assert_eq!((status.succeeded, status.failed), (Some(2), Some(1)));
        Ok(())
    })
}

#[test]
fn an_index_is_tried_again_and_its_failed_pod_stays_uncounted_until_then() -> Result<()> {
    without_kubelets(async |scene| {
        let limit = json!({"backoffLimitPerIndex": 1});
        scene.apply(&running(with(indexed("pi", 2, 2), &limit))).await?;
        let first = run(scene, "pi", 2).await?;
        end(scene, &first[0], 0).await?;
        end(scene, &first[1], 1).await?;
        let status = says(scene, "pi", "index 0 is done", |status| status.succeeded == Some(1)).await?;
        assert_eq!(status.failed, None);
        // The status has an index before its pod loses the finalizer.
        scene
            .wait_until("only the failed pod is held", DEADLINE, async || {
                let held: Vec<Pod> = pods(scene, "pi").await?.into_iter().filter(is_tracked).collect();
                let held: Vec<i32> = held.iter().map(index).collect();
                ensure!(held == [1], "{held:?} are held, and 1 tells how often its index has failed");
                Ok(())
            })
            .await?;
        let second = run(scene, "pi", 1).await?;
        let annotations = second[0].metadata.annotations.clone().unwrap_or_default();
        assert_eq!(index(&second[0]), 1);
        assert_eq!(annotations.get("batch.kubernetes.io/job-index-failure-count").map(String::as_str), Some("1"));
        says(scene, "pi", "the first pod is counted", |status| status.failed == Some(1)).await?;
        end(scene, &second[0], 0).await?;
        let status = completed(scene, "pi").await?;
        assert_eq!((status.completed_indexes.as_deref(), status.failed_indexes.as_deref()), (Some("0,1"), Some("")));
        Ok(())
    })
}

#[test]
fn too_many_failed_indexes_end_the_job_at_once() -> Result<()> {
    without_kubelets(async |scene| {
        let limits = json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 1});
        scene.apply(&running(with(indexed("pi", 4, 4), &limits))).await?;
        let pods = run(scene, "pi", 4).await?;
        end(scene, &pods[0], 1).await?;
        says(scene, "pi", "index 0 has failed", |status| status.failed_indexes.as_deref() == Some("0")).await?;
        end(scene, &pods[2], 1).await?;
        let status = failed(scene, "pi", "MaxFailedIndexesExceeded").await?;
        assert_eq!(status.failed_indexes.as_deref(), Some("0,2"));
        assert_eq!(status.failed, Some(4), "those that were cut short have failed as well");
        Ok(())
    })
}

#[test]
fn a_pod_is_replaced_when_it_is_deleted_or_when_it_has_ended() -> Result<()> {
    without_kubelets(async |scene| {
        for (name, policy) in [("eager", "TerminatingOrFailed"), ("patient", "Failed")] {
            let mut of = running(with(job(name, 1, 1), &json!({"podReplacementPolicy": policy})));
            of["spec"]["template"]["metadata"]["annotations"]["pods.e2e/goes"] = json!("never");
            scene.apply(&of).await?;
            run(scene, name, 1).await?;
        }
        scene.kubectl("delete pods --all --wait=false").await?;
        let status = says(scene, "patient", "its pod is going", |status| status.terminating == Some(1)).await?;
        assert_eq!((status.active, status.failed), (None, None));
        says(scene, "eager", "its pod has failed", |status| status.failed == Some(1)).await?;
        // That takes as long as after any failure, and the other Job would have had the same time.
        let replacement = run(scene, "eager", 1).await?;
        let waiting = pods(scene, "patient").await?;
        assert_eq!(waiting.len(), 1, "it was replaced before it ended");
        end(scene, &waiting[0], 137).await?;
        end(scene, &replacement[0], 0).await?;
        says(scene, "patient", "its pod has failed", |status| status.failed == Some(1)).await?;
        let replacement = run(scene, "patient", 1).await?;
        end(scene, &replacement[0], 0).await?;
        completed(scene, "patient").await?;
        // Nobody else ever ends these.
        scene.kubectl("delete pods --all --force --grace-period=0").await.map(drop)
    })
}
