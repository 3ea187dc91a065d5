//! HorizontalPodAutoscalers with metrics that a test sets: up and down, whatever the target's kind, and handed over.
//!
//! Left out: what each metric asks for, which tables over the plan show; and the words of conditions and events, which
//! are compared with upstream's side by side.

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::metrics::{Metrics, Pods};
use e2e::operator::upstream_controller;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, deployment, start_operators, with_cluster};

const OPERATOR: &str = "horizontal-pod-autoscaler-operator";

/// A Deployment whose pods request a tenth of a CPU.
pub(crate) fn web(name: &str, replicas: i32) -> Value {
    let mut web = deployment(name, replicas);
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    web
}

/// An autoscaler of the target of this kind and name, called as it is, from one replica to so many.
pub(crate) fn autoscaler((kind, name): (&str, &str), max: i32, metrics: &[Value]) -> Value {
    let api_version = if kind == "Flock" { "birds.e2e/v1" } else { "apps/v1" };
    let target = json!({"apiVersion": api_version, "kind": kind, "name": name});
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": max, "metrics": metrics},
    })
}

/// A metric of the pods' CPU, in percent of what they request.
pub(crate) fn cpu(percentage: i32) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percentage});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// A metric of each pod, with a target of their average.
pub(crate) fn of_pods(name: &str, average: &str) -> Value {
    let target = json!({"type": "AverageValue", "averageValue": average});
    json!({"type": "Pods", "pods": {"metric": {"name": name}, "target": target}})
}

/// A metric of the Deployment `web`.
pub(crate) fn of_object(name: &str, value: &str) -> Value {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let target = json!({"type": "Value", "value": value});
    json!({"type": "Object", "object": {"describedObject": object, "metric": {"name": name}, "target": target}})
}

/// A metric from outside, with a target for each pod.
pub(crate) fn external(name: &str, average: &str) -> Value {
    let target = json!({"type": "AverageValue", "averageValue": average});
    json!({"type": "External", "external": {"metric": {"name": name}, "target": target}})
}

/// Waits until the autoscaler has scaled its target to so many replicas, and says so.
pub(crate) async fn scaled(scene: &Scene, name: &str, replicas: i32) -> Result<()> {
    scene
        .wait_until(&format!("{name} is scaled to {replicas}"), DEADLINE, async || {
            let seen: HorizontalPodAutoscaler = scene.fetch(name).await?;
            let status = seen.status.unwrap_or_default();
            let counts = (status.current_replicas.unwrap_or(0), status.desired_replicas);
            ensure!(counts == (replicas, replicas), "{status:?}");
            Ok(())
        })
        .await
}

/// A kind with a scale that nobody knows, and one object of it, whose pods are those of the Deployment `web`.
async fn add_flock(scene: &Scene) -> Result<Api<DynamicObject>> {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let properties = json!({
        "spec": {"type": "object", "properties": {"birds": number}},
        "status": {"type": "object", "properties": {"birds": number, "selector": text}},
    });
    let paths = json!({
        "specReplicasPath": ".spec.birds", "statusReplicasPath": ".status.birds",
        "labelSelectorPath": ".status.selector",
    });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": paths},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    });
    let names = json!({"plural": "flocks", "singular": "flock", "kind": "Flock", "listKind": "FlockList"});
    scene
        .apply(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "flocks.birds.e2e"},
            "spec": {"group": "birds.e2e", "scope": "Namespaced", "names": names, "versions": [version]},
        }))
        .await?;
    let flock = json!({
        "apiVersion": "birds.e2e/v1", "kind": "Flock", "metadata": {"name": "flock"}, "spec": {"birds": 2},
    });
    scene.wait_until("flocks are served", DEADLINE, async || scene.apply(&flock).await.map(drop)).await?;
    let flocks = e2e::apply::api(&scene.client, "birds.e2e/v1", "Flock", &scene.namespace).await?;
    let status = Patch::Merge(json!({"status": {"birds": 2, "selector": "app=birds"}}));
    flocks.patch_status("flock", &PatchParams::default(), &status).await?;
    Ok(flocks)
}

/// The versions of the autoscalers and of what they scale: equal if nobody has written anything.
async fn versions(scene: &Scene) -> Result<Vec<Option<String>>> {
    let autoscalers: Vec<HorizontalPodAutoscaler> = scene.list("").await?;
    let deployments: Vec<Deployment> = scene.list("").await?;
    let of_autoscalers = autoscalers.iter().map(ResourceExt::resource_version);
    Ok(of_autoscalers.chain(deployments.iter().map(ResourceExt::resource_version)).collect())
}

/// Waits until nothing is written for as long as three looks take, and gives the versions.
async fn at_rest(scene: &Scene) -> Result<Vec<Option<String>>> {
    let mut last = (versions(scene).await?, tokio::time::Instant::now());
    scene
        .wait_until("nothing is written any more", DEADLINE, async || {
            let now = versions(scene).await?;
            if now != last.0 {
                last = (now, tokio::time::Instant::now());
            }
            ensure!(last.1.elapsed().as_secs() >= 3, "written a moment ago: {:?}", last.0);
            Ok(last.0.clone())
        })
        .await
}

#[test]
fn autoscalers_change_hands_and_scale_by_load_whatever_the_target_is() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        let metrics = Metrics::start(&scene.cluster, &scene.namespace, Pods::Live).await?;
        let rest = ControllerManager::without([OPERATOR].map(upstream_controller));
        scene.apply(&web("web", 1)).await?;
        scene.rolled_out("web").await?;
        // As much load as there is, whoever shares it.
        metrics.set_cpu("web", 100);
        scene.apply(&autoscaler(("Deployment", "web"), 3, &[cpu(50)])).await?;
        scaled(scene, "web", 3).await?;
        metrics.set_cpu("web", 50);
        let before = at_rest(scene).await?;

        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(rest).await?;
        let mut operators = start_operators(&scene.cluster, [OPERATOR]).await?;
        assert_eq!(at_rest(scene).await?, before, "the operator wrote what needed no write");

        metrics.set_cpu("web", 10);
        scaled(scene, "web", 1).await?;
        metrics.set_cpu("web", 100);
        scaled(scene, "web", 3).await?;
        metrics.set_cpu("web", 50);
        let flocks = add_flock(scene).await?;
        metrics.set("length", 70_000);
        scene.apply(&autoscaler(("Flock", "flock"), 9, &[external("length", "10")])).await?;
        scene
            .wait_until("the flock has seven birds", DEADLINE, async || {
                let birds = flocks.get("flock").await?.data["spec"]["birds"].clone();
                ensure!(birds == 7, "{birds}");
                Ok(())
            })
            .await?;
        let status = Patch::Merge(json!({"status": {"birds": 7}}));
        flocks.patch_status("flock", &PatchParams::default(), &status).await?;
        let before = at_rest(scene).await?;

        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        assert_eq!(at_rest(scene).await?, before, "what the operator left was not what upstream expects");
        metrics.set_cpu("web", 10);
        scaled(scene, "web", 1).await
    })
}
