//! Budgets and evictions: what the apiserver lets through by the status that is written here.
//! Left out: the numbers in all their cases, which are tables of the operator.

use anyhow::{Context, Result, ensure};
use e2e::apply::api;
use e2e::cluster::ClusterOptions;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kube::ResourceExt;
use kube::api::{EvictParams, ListParams};
use serde_json::{Value, json};

use crate::batch;
use crate::support::objects::{is_active, is_ready};
use crate::support::{DEADLINE, Scene, on_shared_cluster, start_operators, template, with_cluster};

/// A budget of the pods labelled `app=NAME`.
pub(crate) fn budget(name: &str, limit: &Value) -> Value {
    let mut budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}},
    });
    for (field, value) in limit.as_object().into_iter().flatten() {
        budget["spec"][field] = value.clone();
    }
    budget
}

/// A pod labelled `app=APP`, of nobody.
pub(crate) fn pod(name: &str, app: &str) -> Value {
    let mut pod = template(app);
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod
}

pub(crate) async fn status(scene: &Scene, name: &str) -> Result<PodDisruptionBudgetStatus> {
    scene.fetch::<PodDisruptionBudget>(name).await?.status.context("it has no status")
}

/// Waits until so many of so many pods may be evicted.
pub(crate) async fn allows(scene: &Scene, name: &str, allowed: i32, expected: i32) -> Result<()> {
    scene
        .wait_until(&format!("{name} allows {allowed} of {expected}"), DEADLINE, async || {
            let status = status(scene, name).await?;
            let found = (status.disruptions_allowed, status.expected_pods);
            ensure!(found == (Some(allowed), Some(expected)), "{status:?}");
            Ok(())
        })
        .await
}

/// Says of a pod, once it is ready, that something was to end it long ago.
pub(crate) async fn stale_target(scene: &Scene, name: &str) -> Result<()> {
    let mut conditions = scene
        .wait_until(&format!("{name} is ready"), DEADLINE, async || {
            let pod: Pod = scene.fetch(name).await?;
            ensure!(is_ready(&pod), "{:?}", pod.status);
            Ok(serde_json::to_value(pod)?["status"]["conditions"].clone())
        })
        .await?;
    let target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": "2026-01-01T12:00:00Z",
    });
    conditions.as_array_mut().context("it has no conditions")?.push(target);
    scene.patch_status::<Pod>(name, &json!({"status": {"conditions": conditions}})).await.map(drop)
}

/// The pods of an app that nobody has deleted.
pub(crate) async fn living(scene: &Scene, app: &str) -> Result<Vec<String>> {
    let pods: Vec<Pod> = scene.list(&format!("app={app}")).await?;
    Ok(pods.iter().filter(|pod| is_active(pod)).map(ResourceExt::name_any).collect())
}

/// Tries to evict each of these pods ten times, all at once.
pub(crate) async fn storm(scene: &Scene, pods: &[String]) {
    let all = pods.iter().flat_map(|pod| std::iter::repeat_n(pod, 10));
    // Most are refused.
    join_all(all.map(async |pod| scene.api::<Pod>().evict(pod, &EvictParams::default()).await.is_ok())).await;
}

#[test]
fn a_storm_of_evictions_never_takes_a_pod_more_than_the_budget_allows() -> Result<()> {
    on_shared_cluster(async |scene| {
        for name in ["a", "b", "c"] {
            scene.apply(&pod(name, "calm")).await?;
        }
        scene.apply(&budget("calm", &json!({"minAvailable": 2}))).await?;
        allows(scene, "calm", 1, 3).await?;
        storm(scene, &living(scene, "calm").await?).await;
        allows(scene, "calm", 0, 2).await?;
        for _ in 0..3 {
            storm(scene, &living(scene, "calm").await?).await;
        }
        let living = living(scene, "calm").await?;
        ensure!(living.len() == 2, "{living:?}");
        let status = status(scene, "calm").await?;
        ensure!(status.disrupted_pods.unwrap_or_default().is_empty(), "the eviction is done");
        scene.apply(&pod("d", "calm")).await?;
        allows(scene, "calm", 1, 3).await
    })
}

#[test]
fn a_share_of_pods_whose_owner_has_no_scale_is_none() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&batch::running(batch::job("crew", 1, 1))).await?;
        scene.apply(&budget("crew", &json!({"maxUnavailable": 1}))).await?;
        scene
            .wait_until("the budget says why", DEADLINE, async || {
                let conditions = status(scene, "crew").await?.conditions.unwrap_or_default();
                let condition = conditions.iter().find(|condition| condition.type_ == "DisruptionAllowed");
                let said = condition.map(|condition| (condition.reason.as_str(), condition.message.as_str()));
                let expected = ("SyncFailed", "jobs.batch does not implement the scale subresource");
                ensure!(said == Some(expected), "{condition:?}");
                Ok(())
            })
            .await?;
        scene.told("CalculateExpectedPodCountFailed").await.map(drop)
    })
}

/// A kind whose objects say in their spec how many replicas they ask for.
fn definition() -> Value {
    let number = json!({"type": "integer"});
    let replicas = json!({"type": "object", "properties": {"replicas": number}});
    let schema = json!({"type": "object", "properties": {"spec": replicas, "status": replicas}});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "flocks.disruption.example"},
        "spec": {
            "group": "disruption.example", "scope": "Namespaced",
            "names": {"kind": "Flock", "singular": "flock", "plural": "flocks"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": scale},
            }],
        },
    })
}

/// Upstream: `TestPDBWithScaleSubresource`, `test/integration/disruption/disruption_test.go`.
#[test]
fn an_owner_of_a_kind_of_its_own_is_asked_for_its_scale() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 1, ..ClusterOptions::default() }, async |scene| {
        let _operators = start_operators(&scene.cluster, ["disruption-operator"]).await?;
        scene.apply(&definition()).await?;
        let flock = json!({
            "apiVersion": "disruption.example/v1", "kind": "Flock", "metadata": {"name": "birds"},
            "spec": {"replicas": 4},
        });
        let served = async || {
            let flocks = api(&scene.client, "disruption.example/v1", "Flock", &scene.namespace).await?;
            flocks.list(&ListParams::default()).await.map(drop).context("list flocks")
        };
        scene.wait_until("the kind is served", DEADLINE, served).await?;
        let owner = scene.apply(&flock).await?;
        for name in ["birds-0", "birds-1", "birds-2", "birds-3"] {
            let mut bird = pod(name, "birds");
            bird["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "disruption.example/v1", "kind": "Flock", "name": "birds",
                "uid": owner.uid().context("it has no uid")?, "controller": true,
            }]);
            scene.apply(&bird).await?;
        }
        scene.apply(&budget("birds", &json!({"maxUnavailable": 1}))).await?;
        allows(scene, "birds", 1, 4).await?;
        scene.apply(&budget("birds", &json!({"maxUnavailable": "50%"}))).await?;
        allows(scene, "birds", 2, 4).await
    })
}
