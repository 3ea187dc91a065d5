//! `podFailurePolicy`: what a failed pod means, by its exit code or by its conditions.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{completed, condition, end, exiting, failed, indexed, job, run, running, says, with};
use crate::support::{Scene, on_shared_cluster, without_kubelets};

/// A Job of which no pod may fail, but for these rules.
fn by_rules(job: Value, rules: &Value) -> Value {
    with(job, &json!({"backoffLimit": 0, "podFailurePolicy": {"rules": rules}}))
}

fn exit_codes(action: &str, codes: &[i32]) -> Value {
    json!({"action": action, "onExitCodes": {"containerName": "main", "operator": "In", "values": codes}})
}

fn disruption(action: &str) -> Value {
    json!({"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]})
}

/// As `kubectl drain` does it: the apiserver notes why, then deletes.
async fn evict(scene: &Scene, pod: &Pod) -> Result<()> {
    let evicted = scene.api::<Pod>().evict(&pod.name_any(), &kube::api::EvictParams::default()).await;
    evicted.map(drop).context("evict a pod")
}

#[test]
fn an_exit_code_ends_the_whole_job() -> Result<()> {
    on_shared_cluster(async |scene| {
        let rules = json!([exit_codes("Ignore", &[1]), exit_codes("FailJob", &[42])]);
        let mut of = by_rules(exiting(job("pi", 1, 3), 42), &rules);
        of["spec"]["backoffLimit"] = json!(6);
        scene.apply(&of).await?;
        let status = failed(scene, "pi", "PodFailurePolicy").await?;
        assert_eq!(status.failed, Some(1));
        let pod = super::pods(scene, "pi").await?[0].name_any();
        let message = format!(
            "Container main for pod {}/{pod} failed with exit code 42 matching FailJob rule at index 1",
            scene.namespace
        );
        assert_eq!(condition(&status, "Failed").map(|(_, message)| message), Some(&*message));
        assert_eq!(scene.told("PodFailurePolicy").await?[0].message.as_deref(), Some(&*message));
        Ok(())
    })
}

#[test]
fn the_other_pods_go_when_one_ends_the_whole_job() -> Result<()> {
    without_kubelets(async |scene| {
        let rules = json!([exit_codes("FailJob", &[42])]);
        scene.apply(&by_rules(running(indexed("pi", 3, 3)), &rules)).await?;
        let pods = run(scene, "pi", 3).await?;
        end(scene, &pods[2], 0).await?;
        says(scene, "pi", "index 2 is done", |status| status.succeeded == Some(1)).await?;
        end(scene, &pods[0], 42).await?;
        let status = failed(scene, "pi", "PodFailurePolicy").await?;
        assert_eq!((status.completed_indexes.as_deref(), status.failed), (Some("2"), Some(2)));
        Ok(())
    })
}

#[test]
fn an_evicted_pod_is_replaced_and_does_not_count() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&by_rules(running(job("pi", 1, 1)), &json!([disruption("Ignore")]))).await?;
        let evicted = run(scene, "pi", 1).await?.remove(0);
        evict(scene, &evicted).await?;
        let replacement = run(scene, "pi", 1).await?.remove(0);
        assert_ne!(replacement.uid(), evicted.uid());
        let status = says(scene, "pi", "one is active", |status| status.active == Some(1)).await?;
        assert_eq!(status.failed, None);
        assert_eq!(status.conditions, None);
        Ok(())
    })
}

#[test]
fn what_is_counted_is_counted_whatever_the_next_rule_says() -> Result<()> {
    without_kubelets(async |scene| {
        let rules = json!([exit_codes("Count", &[3]), exit_codes("Ignore", &[3, 4])]);
        let mut of = by_rules(running(job("pi", 2, 2)), &rules);
        of["spec"]["backoffLimit"] = json!(1);
        scene.apply(&of).await?;
        let pods = run(scene, "pi", 2).await?;
        end(scene, &pods[0], 3).await?;
        end(scene, &pods[1], 4).await?;
        let status = says(scene, "pi", "one is counted", |status| status.failed == Some(1)).await?;
        assert_eq!(condition(&status, "FailureTarget"), None, "one may fail");
        let pods = run(scene, "pi", 2).await?;
        end(scene, &pods[0], 3).await?;
        let status = failed(scene, "pi", "BackoffLimitExceeded").await?;
        assert_eq!(status.failed, Some(3), "two that failed, and one that was cut short");
        Ok(())
    })
}

#[test]
fn an_exit_code_ends_its_index_for_good() -> Result<()> {
    without_kubelets(async |scene| {
        let rules = json!([exit_codes("FailIndex", &[42])]);
        let limits = json!({"backoffLimitPerIndex": 5, "podFailurePolicy": {"rules": rules}});
        scene.apply(&running(with(indexed("pi", 2, 2), &limits))).await?;
        let pods = run(scene, "pi", 2).await?;
        end(scene, &pods[1], 42).await?;
        let status =
            says(scene, "pi", "index 1 has failed", |status| status.failed_indexes.as_deref() == Some("1")).await?;
        assert_eq!(status.active, Some(1), "the other index goes on");
        end(scene, &pods[0], 0).await?;
        let status = failed(scene, "pi", "FailedIndexes").await?;
        assert_eq!(status.completed_indexes.as_deref(), Some("0"));
        Ok(())
    })
}

#[test]
fn a_pod_that_is_going_is_not_replaced_before_its_exit_code_is_known() -> Result<()> {
    without_kubelets(async |scene| {
        let mut of = by_rules(running(job("pi", 1, 1)), &json!([exit_codes("Ignore", &[7])]));
        of["spec"]["template"]["metadata"]["annotations"]["pods.e2e/goes"] = json!("never");
        scene.apply(&of).await?;
        let pod = run(scene, "pi", 1).await?.remove(0);
        scene.kubectl(&format!("delete pod/{} --wait=false", pod.name_any())).await?;
        let status = says(scene, "pi", "its pod is going", |status| status.terminating == Some(1)).await?;
        assert_eq!((status.active, status.failed), (None, None));
        end(scene, &pod, 7).await?;
        let replacement = run(scene, "pi", 1).await?.remove(0);
        end(scene, &replacement, 0).await?;
        let status = completed(scene, "pi").await?;
        assert_eq!((status.succeeded, status.failed), (Some(1), None));
        scene.kubectl("delete pods --all --force --grace-period=0").await.map(drop)
    })
}

#[test]
fn an_eviction_may_end_the_whole_job_or_its_index() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&by_rules(running(job("pi", 1, 1)), &json!([disruption("FailJob")]))).await?;
        let limits = json!({"backoffLimitPerIndex": 5, "podFailurePolicy": {"rules": [disruption("FailIndex")]}});
        scene.apply(&running(with(indexed("indexed", 1, 1), &limits))).await?;
        let pod = run(scene, "pi", 1).await?.remove(0);
        evict(scene, &pod).await?;
        evict(scene, &run(scene, "indexed", 1).await?.remove(0)).await?;
        let status = failed(scene, "pi", "PodFailurePolicy").await?;
        let message = format!(
            "Pod {}/{} has condition DisruptionTarget matching FailJob rule at index 0",
            scene.namespace,
            pod.name_any()
        );
        assert_eq!(condition(&status, "Failed").map(|(_, message)| message), Some(&*message));
        let status = failed(scene, "indexed", "FailedIndexes").await?;
        assert_eq!(status.failed_indexes.as_deref(), Some("0"));
        Ok(())
    })
}

#[test]
fn a_policy_without_rules_is_none_but_for_when_pods_are_replaced() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&with(job("pi", 1, 1), &json!({"podFailurePolicy": {"rules": []}}))).await?;
        let status = completed(scene, "pi").await?;
        assert_eq!((status.succeeded, status.failed), (Some(1), None));
        Ok(())
    })
}

#[test]
fn an_evicted_pod_that_still_goes_when_its_job_fails_does_not_count() -> Result<()> {
    without_kubelets(async |scene| {
        let mut of = by_rules(running(job("pi", 2, 2)), &json!([disruption("Ignore")]));
        of["spec"]["template"]["metadata"]["annotations"]["pods.e2e/goes"] = json!("never");
        scene.apply(&of).await?;
        let pods = run(scene, "pi", 2).await?;
        evict(scene, &pods[0]).await?;
        says(scene, "pi", "one is going", |status| status.terminating == Some(1)).await?;
        end(scene, &pods[1], 1).await?;
        let status = says(scene, "pi", "the other one has failed", |status| status.failed == Some(1)).await?;
        assert_eq!(condition(&status, "FailureTarget").map(|(reason, _)| reason), Some("BackoffLimitExceeded"));
        end(scene, &pods[0], 137).await?;
        let status = failed(scene, "pi", "BackoffLimitExceeded").await?;
        assert_eq!(status.failed, Some(1));
        scene.kubectl("delete pods --all --force --grace-period=0").await.map(drop)
    })
}
