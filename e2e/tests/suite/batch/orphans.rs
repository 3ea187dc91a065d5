//! The finalizer keeps a pod until it is counted, and no longer: whatever becomes of its Job, the pod can go.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;

use super::{FINALIZER, completed, is_tracked, job, run, running};
use crate::support::{DEADLINE, Scene, on_shared_cluster};

/// By which the operator follows pods.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// Waits until pods with this label are there, `count` of them, and none has the finalizer.
async fn free(scene: &Scene, selector: &str, count: usize) -> Result<()> {
    scene
        .wait_until(&format!("{count} pods, none of them kept"), DEADLINE, async || {
            let pods: Vec<Pod> = scene.list(selector).await?;
            ensure!(pods.len() == count, "{} pods", pods.len());
            let kept: Vec<_> = pods.iter().filter(|pod| is_tracked(pod)).map(ResourceExt::name_any).collect();
            ensure!(kept.is_empty(), "{kept:?} keep the finalizer");
            Ok(())
        })
        .await
}

#[test]
fn pods_go_with_their_job_or_stay_without_it() -> Result<()> {
    on_shared_cluster(async |scene| {
        for name in ["background", "foreground", "orphan"] {
            scene.apply(&running(job(name, 2, 2))).await?;
            run(scene, name, 2).await?;
        }
        for name in ["background", "foreground", "orphan"] {
            scene.kubectl(&format!("delete job/{name} --cascade={name} --timeout=60s")).await?;
        }
        free(scene, "app=background", 0).await?;
        free(scene, "app=foreground", 0).await?;
        free(scene, "app=orphan", 2).await?;
        let left: Vec<Pod> = scene.list("app=orphan").await?;
        assert!(left.iter().all(|pod| pod.owner_references().is_empty()), "{left:?}");
        Ok(())
    })
}

#[test]
fn a_pod_that_nobody_counts_loses_the_finalizer() -> Result<()> {
    on_shared_cluster(async |scene| {
        // Pods are followed while a Job counts some.
        scene.apply(&running(job("busy", 1, 1))).await?;
        run(scene, "busy", 1).await?;
        scene.apply(&job("over", 1, 1)).await?;
        completed(scene, "over").await?;
        let over: Job = scene.fetch("over").await?;
        let owner = |name: &str, uid: String| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true}]);
        let owners = [("nobodys", json!([])), ("of-a-job-that-is-over", owner("over", over.uid().unwrap_or_default()))];
        for (name, owners) in owners {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": "left", CONTROLLER_UID: "none"}, "finalizers": [FINALIZER],
                    "ownerReferences": owners},
                "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]},
            });
            scene.apply(&pod).await?;
        }
        free(scene, "app=left", 2).await
    })
}

#[test]
fn a_finished_jobs_pods_are_deleted_at_once() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&job("pi", 3, 3)).await?;
        completed(scene, "pi").await?;
        scene.kubectl("delete pods --all --timeout=30s").await?;
        free(scene, "app=pi", 0).await?;
        let status = super::status(scene, "pi").await?;
        assert_eq!(status.succeeded, Some(3), "what was counted stays counted");
        Ok(())
    })
}

#[test]
fn a_namespace_with_running_jobs_can_be_deleted() -> Result<()> {
    on_shared_cluster(async |scene| {
        let doomed = scene.beside("doomed").await?;
        doomed.apply(&running(job("pi", 5, 50))).await?;
        run(&doomed, "pi", 5).await?;
        doomed.delete_namespace().await?;
        doomed.namespace_gone().await
    })
}
