//! Between the decision that a Job ends and its end: what is announced, and what has to be over first.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{completed, condition, end, failed, indexed, job, run, running, says, with};
use crate::support::{DEADLINE, Scene, without_kubelets};

/// Its pods stay until the test ends them, also when they are deleted.
fn lingering(job: Value) -> Value {
    let mut job = running(job);
    job["spec"]["template"]["metadata"]["annotations"]["pods.e2e/goes"] = json!("never");
    job
}

/// Waits until the pod of a Job that ends is let go, as nobody else waits for it.
async fn let_go(scene: &Scene, job: &str, pod: &Pod) -> Result<()> {
    let uid = crate::support::uid(pod);
    scene
        .wait_until("the pod that still goes is let go", DEADLINE, async || {
            let pods = super::pods(scene, job).await?;
            let kept = pods.iter().any(|pod| crate::support::uid(pod) == uid && super::is_tracked(pod));
            ensure!(!kept, "it keeps the finalizer");
            Ok(())
        })
        .await
}

#[test]
fn a_success_is_announced_and_said_only_when_no_pod_goes_any_more() -> Result<()> {
    without_kubelets(async |scene| {
        let policy = json!({"successPolicy": {"rules": [{"succeededCount": 2}]}});
        scene.apply(&lingering(with(indexed("any-two", 3, 3), &policy))).await?;
        let pods = run(scene, "any-two", 3).await?;
        end(scene, &pods[2], 0).await?;
        says(scene, "any-two", "one is done", |status| status.succeeded == Some(1)).await?;
        end(scene, &pods[0], 0).await?;
        let announced = Some(("SuccessPolicy", "Matched rules at index 0"));
        let status = says(scene, "any-two", "it will be complete", |status| {
            condition(status, "SuccessCriteriaMet") == announced && status.terminating == Some(1)
        })
        .await?;
        let_go(scene, "any-two", &pods[1]).await?;
        assert_eq!((condition(&status, "Complete"), &status.completion_time), (None, &None));
        assert_eq!((status.active, status.completed_indexes.as_deref()), (None, Some("0,2")));
        end(scene, &pods[1], 1).await?;
        let status = completed(scene, "any-two").await?;
        assert_eq!(condition(&status, "Complete"), announced);
        assert_eq!((status.succeeded, status.failed), (Some(2), None), "who was not needed any more has not failed");
        scene.kubectl("delete pods --all --force --grace-period=0").await.map(drop)
    })
}

#[test]
fn a_failure_too_has_to_wait_for_the_pods_that_still_go() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&lingering(with(job("pi", 2, 2), &json!({"backoffLimit": 0})))).await?;
        let pods = run(scene, "pi", 2).await?;
        end(scene, &pods[0], 1).await?;
        let status = says(scene, "pi", "it will fail", |status| {
            condition(status, "FailureTarget").is_some() && status.terminating == Some(1)
        })
        .await?;
        let_go(scene, "pi", &pods[1]).await?;
        assert_eq!(condition(&status, "Failed"), None);
        end(scene, &pods[1], 0).await?;
        let status = failed(scene, "pi", "BackoffLimitExceeded").await?;
        assert_eq!((status.succeeded, status.failed), (None, Some(2)), "it was counted when it was cut short");
        scene.kubectl("delete pods --all --force --grace-period=0").await.map(drop)
    })
}
