//! Whose a pod is: adopted, released, or another controller's altogether.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{completed, end, is_tracked, job, run, running, says, status, with};
use crate::support::{DEADLINE, Scene, on_shared_cluster, without_kubelets};

/// A Job that selects by a label of the user's own.
fn selecting(name: &str, parallelism: i32, completions: i32) -> Value {
    let selector = json!({"manualSelector": true, "selector": {"matchLabels": {"app": name}}});
    running(with(job(name, parallelism, completions), &selector))
}

/// A pod as this Job would make it, but made by nobody.
fn stray(name: &str, job: &Value) -> Value {
    let template = &job["spec"]["template"];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"]},
        "spec": template["spec"],
    })
}

/// The Jobs that own a pod, and whether it waits to be counted.
async fn owners(scene: &Scene, pod: &str) -> Result<(Vec<String>, bool)> {
    let pod: Pod = scene.fetch(pod).await?;
    Ok((pod.owner_references().iter().map(|owner| owner.name.clone()).collect(), is_tracked(&pod)))
}

#[test]
fn a_pod_that_matches_is_adopted_and_counted_and_one_that_does_not_is_released() -> Result<()> {
    without_kubelets(async |scene| {
        let pi = selecting("pi", 2, 2);
        scene.apply(&stray("stray", &pi)).await?;
        scene.apply(&pi).await?;
        let adopted = (vec!["pi".to_owned()], true);
        scene
            .wait_until("the stray pod is adopted", DEADLINE, async || {
                let owned = owners(scene, "stray").await?;
                ensure!(owned == adopted, "{owned:?}");
                Ok(())
            })
            .await?;
        says(scene, "pi", "two are active", |status| status.active == Some(2)).await?;
        let pods: Vec<Pod> = scene.list("app=pi").await?;
        assert_eq!(pods.len(), 2, "only one more was made");

        let made = pods.iter().find(|pod| pod.name_any() != "stray").map(ResourceExt::name_any).unwrap();
        scene.kubectl(&format!("label pod/{made} app=free --overwrite")).await?;
        scene
            .wait_until("the other pod is released", DEADLINE, async || {
                let owned = owners(scene, &made).await?;
                ensure!(owned == (Vec::new(), false), "{owned:?}");
                Ok(())
            })
            .await?;
        let stray: Pod = scene.fetch("stray").await?;
        end(scene, &stray, 0).await?;
        let replacement = scene
            .wait_until("the released pod is replaced", DEADLINE, async || {
                let mut pods: Vec<Pod> = scene.list("app=pi").await?;
                pods.retain(|pod| pod.name_any() != "stray" && super::phase(pod) == "Running");
                ensure!(pods.len() == 1, "{} pods", pods.len());
                Ok(pods.remove(0))
            })
            .await?;
        end(scene, &replacement, 0).await?;
        let status = completed(scene, "pi").await?;
        assert_eq!((status.succeeded, status.failed), (Some(2), None));
        Ok(())
    })
}

#[test]
fn a_job_of_another_controller_is_left_alone() -> Result<()> {
    on_shared_cluster(async |scene| {
        let external = with(job("external", 1, 1), &json!({"managedBy": "example.com/queue"}));
        scene.apply(&external).await?;
        let own = with(job("own", 1, 1), &json!({"managedBy": "kubernetes.io/job-controller"}));
        scene.apply(&own).await?;
        completed(scene, "own").await?;
        // The later one is done with, so the earlier one was seen.
        assert!(super::pods(scene, "external").await?.is_empty());
        assert_eq!(status(scene, "external").await?, k8s_openapi::api::batch::v1::JobStatus::default());
        Ok(())
    })
}

#[test]
fn a_quota_is_told_and_respected_and_the_job_goes_on_after_it() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.limit_pods("two", 2).await?;
        scene.apply(&running(job("pi", 4, 4))).await?;
        run(scene, "pi", 2).await?;
        let refused: Vec<Event> = scene.told("FailedCreate").await?;
        let message = refused[0].message.clone().unwrap_or_default();
        assert!(message.starts_with("Error creating: pods ") && message.contains("exceeded quota: two"), "{message}");
        says(scene, "pi", "two are active", |status| status.active == Some(2)).await?;
        scene.kubectl("delete resourcequota/two").await?;
        run(scene, "pi", 4).await.map(drop)
    })
}
