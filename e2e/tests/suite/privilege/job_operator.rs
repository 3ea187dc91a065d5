//! Jobs that adopt, that have made too many pods, and whose pod loses its label.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;

use crate::batch;
use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let mut adopting = batch::running(batch::job("adopting", 1, 1));
    adopting["spec"]["manualSelector"] = json!(true);
    adopting["spec"]["selector"] = json!({"matchLabels": {"app": "adopting"}});
    let template = &adopting["spec"]["template"];
    scene
        .apply(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {"app": "adopting"}},
            "spec": template["spec"],
        }))
        .await?;
    scene.apply(&adopting).await?;
    scene.apply(&batch::running(batch::job("shrinking", 2, 2))).await?;
    scene
        .wait_until("both have what they asked for", DEADLINE, async || {
            for (name, active) in [("adopting", 1), ("shrinking", 2)] {
                let status = batch::status(scene, name).await?;
                ensure!(status.active == Some(active), "{name}: {status:?}");
            }
            Ok(())
        })
        .await?;
    scene.patch::<Job>("shrinking", &json!({"spec": {"parallelism": 1}})).await?;
    scene
        .wait_until("one pod was too many", DEADLINE, async || {
            let status = batch::status(scene, "shrinking").await?;
            ensure!(status.active == Some(1), "{status:?}");
            Ok(())
        })
        .await?;
    // Of the namespace of a Job with a selector of its own every pod is followed.
    lose_label(&scene.beside("labels").await?).await
}

async fn lose_label(scene: &Scene) -> Result<()> {
    scene.apply(&batch::running(batch::job("losing", 1, 1))).await?;
    let name = scene
        .wait_until("it has a pod", DEADLINE, async || {
            let pods = scene.list::<Pod>("job-name=losing").await?;
            pods.first().map(ResourceExt::name_any).context("it has none")
        })
        .await?;
    let labels = json!({"metadata": {"labels": {"batch.kubernetes.io/controller-uid": null}}});
    scene.patch::<Pod>(&name, &labels).await?;
    scene
        .wait_until("the pod without the label is released", DEADLINE, async || {
            let pod = scene.fetch::<Pod>(&name).await?;
            ensure!(pod.owner_references().is_empty() && pod.finalizers().is_empty(), "{:?}", pod.metadata);
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&batch::job("made", 1, 1)).await?;
    Ok(format!("create pods {}/made-: ", scene.namespace))
}
