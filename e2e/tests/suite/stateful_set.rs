//! StatefulSets that a broken template has brought to a stop, and the annotation by which they get over it.
//! Left out: all else about which pod is replaced, such as with `maxUnavailable`, which are tables of the operator.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::disruption::{allows, budget};
use crate::support::{DEADLINE, Scene, stateful_set, uid, without_kubelets};

const ANNOTATION: &str = "statefulset.operators.local/replace-stuck-pods";

fn web(replicas: i32) -> Value {
    stateful_set("web", replicas, &json!({}))
}

/// The StatefulSet, which asks for the cure.
fn curable(mut set: Value) -> Value {
    set["metadata"]["annotations"] = json!({ANNOTATION: "true"});
    set
}

/// It with a template of which no pod ever gets ready.
fn faulty(mut set: Value) -> Value {
    set["spec"]["template"]["metadata"]["annotations"] = json!({"pods.e2e/becomes": "never-ready"});
    set
}

/// Changes what becomes of the template's pods, and waits until that has been seen and acted on.
async fn change(scene: &Scene, becomes: &Value) -> Result<()> {
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"pods.e2e/becomes": becomes}}}}});
    let generation = scene.patch::<StatefulSet>("web", &patch).await?.metadata.generation;
    scene
        .wait_until("the change has been seen", DEADLINE, async || {
            let status = scene.fetch::<StatefulSet>("web").await?.status.context("it has no status")?;
            ensure!(status.observed_generation == generation, "{status:?}");
            Ok(())
        })
        .await
}

/// Waits until all pods are of the template of now, and ready.
async fn settled(scene: &Scene, replicas: i32) -> Result<()> {
    scene
        .wait_until(&format!("{replicas} pods are updated and ready"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch("web").await?;
            let status = set.status.clone().unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let counts = (status.replicas, status.ready_replicas, status.updated_replicas);
            ensure!(is_seen && counts == (replicas, Some(replicas), Some(replicas)), "{status:?}");
            Ok(())
        })
        .await
}

/// The pod's uid, once it runs without being ready.
async fn started(scene: &Scene, pod: &str) -> Result<String> {
    scene
        .wait_until(&format!("{pod} runs and is not ready"), DEADLINE, async || {
            let pod: Pod = scene.fetch(pod).await?;
            let status = pod.status.clone().unwrap_or_default();
            let mut conditions = status.conditions.iter().flatten();
            let is_unready = conditions.any(|condition| condition.type_ == "Ready" && condition.status == "False");
            ensure!(status.phase.as_deref() == Some("Running") && is_unready, "{status:?}");
            Ok(uid(&pod))
        })
        .await
}

/// The pod is there, and nobody has deleted it.
async fn stays(scene: &Scene, name: &str, of: &str) -> Result<()> {
    let pod: Pod = scene.fetch(name).await?;
    ensure!(uid(&pod) == of && pod.metadata.deletion_timestamp.is_none(), "{:?}", pod.metadata);
    Ok(())
}

/// Upstream: k/k#67250, of the first template.
#[test]
fn a_faulty_first_template_is_got_over_where_the_set_asks_for_it() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&curable(faulty(web(2)))).await?;
        started(scene, "web-0").await?;
        change(scene, &Value::Null).await?;
        settled(scene, 2).await?;
        let told = scene.told("SuccessfulEvict").await?;
        let messages: Vec<&str> = told.iter().filter_map(|event| event.message.as_deref()).collect();
        let expected = "Evict Pod web-0 in StatefulSet web successful: never ready, not of web-";
        ensure!(messages.iter().all(|message| message.starts_with(expected)), "{messages:?}");
        Ok(())
    })
}

/// Upstream: k/k#137409, of the first template.
#[test]
fn a_faulty_first_template_is_got_over_in_parallel_too() -> Result<()> {
    without_kubelets(async |scene| {
        let mut set = curable(faulty(web(2)));
        set["spec"]["podManagementPolicy"] = json!("Parallel");
        scene.apply(&set).await?;
        started(scene, "web-0").await?;
        started(scene, "web-1").await?;
        change(scene, &Value::Null).await?;
        settled(scene, 2).await
    })
}

/// Upstream: k/k#67250.
#[test]
fn a_broken_update_is_got_over_by_an_undo_and_a_pod_that_was_ready_stays() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&curable(web(2))).await?;
        settled(scene, 2).await?;
        let first = uid(&scene.fetch::<Pod>("web-0").await?);
        change(scene, &json!("never-ready")).await?;
        started(scene, "web-1").await?;
        change(scene, &Value::Null).await?;
        settled(scene, 2).await?;
        stays(scene, "web-0", &first).await
    })
}

#[test]
fn without_the_annotation_a_set_stays_stuck_until_it_gets_it() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&faulty(web(2))).await?;
        let stuck = started(scene, "web-0").await?;
        change(scene, &Value::Null).await?;
        stays(scene, "web-0", &stuck).await?;
        let pods: Vec<Pod> = scene.list("app=web").await?;
        let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        ensure!(names == ["web-0"], "{names:?}");
        scene.kubectl(&format!("annotate statefulset/web {ANNOTATION}=true")).await?;
        settled(scene, 2).await
    })
}

#[test]
fn a_disruption_budget_keeps_a_stuck_pod() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&curable(faulty(web(1)))).await?;
        let stuck = started(scene, "web-0").await?;
        scene.apply(&budget("web", &json!({"minAvailable": 1}))).await?;
        allows(scene, "web", 0, 1).await?;
        // The status is written after the eviction was tried.
        change(scene, &Value::Null).await?;
        stays(scene, "web-0", &stuck).await?;
        let failed = scene.events("FailedEvict").await?;
        ensure!(failed.is_empty(), "{failed:?}");
        scene.kubectl("delete poddisruptionbudget/web").await?;
        settled(scene, 1).await
    })
}
