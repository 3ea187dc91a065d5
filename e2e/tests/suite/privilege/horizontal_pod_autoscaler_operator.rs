//! Autoscalers of two kinds of targets, by metrics of all three APIs, and one whose target is not there.

use anyhow::Result;
use e2e::metrics::{Metrics, Pods, withdraw};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::json;

use crate::autoscaling::{autoscaler, cpu, external, of_object, of_pods, scaled, web};
use crate::support::{Scene, template};

pub(super) const NEEDS: &[&str] = &["deployment-operator", "replicaset-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let metrics = Metrics::start(&scene.cluster, &scene.namespace, Pods::Live).await?;
    scene.apply(&web("web", 1)).await?;
    scene.apply(&web("busy", 1)).await?;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "set"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "set"}}, "template": template("set")},
    });
    scene.apply(&set).await?;
    metrics.set_cpu("web", 200);
    scene.apply(&autoscaler(("Deployment", "web"), 4, &[cpu(50)])).await?;
    metrics.set("pods/*/qps", 20_000);
    metrics.set("deployments.apps/web/hits", 1000);
    scene.apply(&autoscaler(("Deployment", "busy"), 2, &[of_pods("qps", "10"), of_object("hits", "10")])).await?;
    metrics.set("length", 20_000);
    metrics.set("lag", 1000);
    scene.apply(&autoscaler(("ReplicaSet", "set"), 3, &[external("length", "10"), external("lag", "10")])).await?;
    scene.apply(&autoscaler(("Deployment", "gone"), 2, &[cpu(50)])).await?;
    for (name, replicas) in [("web", 4), ("busy", 2), ("set", 2)] {
        scaled(scene, name, replicas).await?;
    }
    scene.told("FailedGetScale").await?;
    withdraw(&scene.client).await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.patch_status::<HorizontalPodAutoscaler>("web-3", &json!({"status": {"currentReplicas": 7}})).await?;
    let autoscaler = format!("horizontalpodautoscalers.autoscaling/status {}/web-3", scene.namespace);
    Ok(format!("patch {autoscaler}: status.currentReplicas: "))
}
