//! Autoscalers that scale by each kind of metric, that are bound, that have nothing to go by, and whose targets are gone
//! or at zero: their statuses, their targets' sizes and their events.
//!
//! Left out: autoscalers that share pods. Upstream names them in no order.

use anyhow::{Result, ensure};
use e2e::metrics::{Metrics, Pods};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::{all, compare, mask};
use crate::autoscaling::{autoscaler, cpu, external, of_object, of_pods, scaled, web};
use crate::support::{DEADLINE, Scene};

/// A metric of a container that no pod has.
fn of_container() -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "other", "target": target}})
}

async fn live(scene: &Scene) -> Result<()> {
    let metrics = Metrics::start(&scene.cluster, &scene.namespace, Pods::Live).await?;
    for (name, replicas) in
        [("web", 1), ("busy", 1), ("bound", 1), ("still", 1), ("many", 4), ("zero", 0), ("blind", 1)]
    {
        scene.apply(&web(name, replicas)).await?;
        scene.rolled_out(name).await?;
    }
    for (app, millis) in [("web", 100), ("many", 50), ("blind", 50)] {
        metrics.set_cpu(app, millis);
    }
    for (metric, millis) in [("pods/*/qps", 20_000), ("deployments.apps/web/hits", 1000), ("length", 90_000)] {
        metrics.set(metric, millis);
    }
    by_metrics(scene).await?;
    blind(scene).await
}

/// Those that find a number, and come to rest.
async fn by_metrics(scene: &Scene) -> Result<()> {
    let of = |name, max, list: &[Value]| autoscaler(("Deployment", name), max, list);
    let mut still = of("still", 9, &[external("length", "10")]);
    still["spec"]["behavior"] = json!({"scaleUp": {"selectPolicy": "Disabled"}});
    for (name, object, replicas, reason) in [
        ("web", of("web", 2, &[cpu(50)]), 2, "TooManyReplicas"),
        ("busy", of("busy", 2, &[of_pods("qps", "10"), of_object("hits", "10")]), 2, "TooManyReplicas"),
        ("bound", of("bound", 2, &[external("length", "10")]), 2, "TooManyReplicas"),
        ("still", still, 1, "ScaleUpLimit"),
        ("many", of("many", 3, &[cpu(50)]), 3, "DesiredWithinRange"),
        ("zero", of("zero", 3, &[cpu(50)]), 0, "ScalingDisabled"),
    ] {
        scene.apply(&object).await?;
        scaled(scene, name, replicas).await?;
        settled(scene, name, reason).await?;
        if replicas > 0 {
            settled(scene, name, "ReadyForNewScale").await?;
        }
    }
    Ok(())
}

/// Those that have nothing to go by, one after the other: together they would fight for the pods. Each says so again and
/// again, so that none is left for whoever comes next; its status is noted.
async fn blind(scene: &Scene) -> Result<()> {
    for (name, target, metric, reasons) in [
        ("gone", "gone", cpu(50), &["FailedGetScale"][..]),
        ("pods", "blind", of_pods("dreams", "10"), &["FailedGetPodsMetric", "FailedComputeMetricsReplicas"]),
        ("object", "blind", of_object("dreams", "10"), &["FailedGetObjectMetric", "FailedComputeMetricsReplicas"]),
        ("outside", "blind", external("dreams", "10"), &["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]),
        ("container", "blind", of_container(), &["FailedGetContainerResourceMetric", "FailedComputeMetricsReplicas"]),
    ] {
        let mut object = autoscaler(("Deployment", target), 3, &[metric]);
        object["metadata"]["name"] = json!(name);
        scene.apply(&object).await?;
        settled(scene, name, reasons[0]).await?;
        for reason in reasons {
            told_twice(scene, name, reason).await?;
        }
        let mut seen = serde_json::to_value(scene.fetch::<HorizontalPodAutoscaler>(name).await?)?["status"].clone();
        mask(&mut seen);
        let seen = seen.to_string().replace(&scene.namespace, "<namespace>");
        let metadata = json!({"name": format!("seen-{name}")});
        scene
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"status": seen}}))
            .await?;
        scene.kubectl(&format!("delete horizontalpodautoscaler/{name}")).await?;
    }
    Ok(())
}

/// Waits until an event about the autoscaler was counted up.
async fn told_twice(scene: &Scene, name: &str, reason: &str) -> Result<()> {
    scene
        .wait_until(&format!("{reason} of {name} is counted up"), DEADLINE, async || {
            let events = scene.events(reason).await?;
            let mut counted = events.iter().filter(|event| event.involved_object.name.as_deref() == Some(name));
            ensure!(counted.any(|event| event.count > Some(1)), "{} events", events.len());
            Ok(())
        })
        .await
}

/// Waits until a condition of the autoscaler has this reason.
async fn settled(scene: &Scene, name: &str, reason: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} says {reason}"), DEADLINE, async || {
            let seen: HorizontalPodAutoscaler = scene.fetch(name).await?;
            let conditions = seen.status.and_then(|status| status.conditions).unwrap_or_default();
            let has = conditions.iter().any(|condition| condition.reason.as_deref() == Some(reason));
            ensure!(has, "{conditions:?}");
            Ok(())
        })
        .await
}

/// A line for each of what is left.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for mut object in all::<HorizontalPodAutoscaler>(scene).await? {
        object["status"].as_object_mut().map(|status| status.remove("lastScaleTime"));
        lines.push(serde_json::to_string_pretty(&object)?.replace(&scene.namespace, "<namespace>"));
    }
    for deployment in scene.list::<Deployment>("").await? {
        let replicas = deployment.spec.and_then(|spec| spec.replicas);
        lines.push(format!("{:?} has {replicas:?}", deployment.metadata.name));
    }
    let seen = scene.list::<ConfigMap>("").await?;
    let seen = seen.iter().filter(|map| map.metadata.name.as_deref().is_some_and(|name| name.starts_with("seen-")));
    lines.extend(seen.map(|map| format!("{:?} {:?}", map.metadata.name, map.data)));
    lines.sort();
    Ok(lines)
}

#[test]
fn the_operator_leaves_of_autoscalers_what_upstream_leaves() -> Result<()> {
    compare(&live, &left, &["horizontal-pod-autoscaler"])
}
