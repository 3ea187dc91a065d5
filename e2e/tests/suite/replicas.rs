//! ReplicaSets and ReplicationControllers, which do the same by two operators.
//! Left out: the full order of deletion, which is a table of the shared crate.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::objects::is_ready;
use crate::support::scene::Namespaced;
use crate::support::{DEADLINE, Scene, on_shared_cluster, template, uid, without_kubelets};

/// The methods and fields that ReplicaSets and ReplicationControllers share.
trait Replicas: Namespaced {
    const API_VERSION: &'static str;
    const RESOURCE: &'static str;

    fn selector(labels: Value) -> Value;

    fn make(name: &str, replicas: i32) -> Value {
        json!({
            "apiVersion": Self::API_VERSION,
            "kind": Self::kind(&()),
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": Self::selector(json!({"app": name})),
                "template": template(name),
            },
        })
    }
}

impl Replicas for ReplicaSet {
    const API_VERSION: &'static str = "apps/v1";
    const RESOURCE: &'static str = "replicaset";

    fn selector(labels: Value) -> Value {
        json!({"matchLabels": labels})
    }
}

impl Replicas for ReplicationController {
    const API_VERSION: &'static str = "v1";
    const RESOURCE: &'static str = "replicationcontroller";

    fn selector(labels: Value) -> Value {
        labels
    }
}

/// The object as JSON, once its last change has been seen and these many pods are ready.
async fn ready<K: Replicas + serde::Serialize>(scene: &Scene, name: &str, pods: u64) -> Result<Value> {
    let what = format!("{} {name} has {pods} ready pods", K::RESOURCE);
    scene
        .wait_until(&what, DEADLINE, async || {
            let seen = serde_json::to_value(scene.fetch::<K>(name).await?)?;
            let status = &seen["status"];
            let is_current = status["observedGeneration"] == seen["metadata"]["generation"];
            let count = |field: &str| status[field].as_u64().unwrap_or(0);
            ensure!(is_current && count("replicas") == pods && count("readyReplicas") == pods, "{status}");
            Ok(seen)
        })
        .await
}

/// The pods that nobody has deleted.
async fn living(scene: &Scene, app: &str) -> Result<Vec<Pod>> {
    let mut pods: Vec<Pod> = scene.list(&format!("app={app}")).await?;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(pods)
}

async fn number_of_pods(scene: &Scene, app: &str, number: usize) -> Result<Vec<Pod>> {
    scene
        .wait_until(&format!("{number} pods of {app}"), DEADLINE, async || {
            let pods = living(scene, app).await?;
            ensure!(pods.len() == number, "{} pods", pods.len());
            Ok(pods)
        })
        .await
}

/// The ReplicaFailure condition; none if there is none.
async fn failure<K: Replicas + serde::Serialize>(scene: &Scene, name: &str) -> Result<Option<Value>> {
    let seen = serde_json::to_value(scene.fetch::<K>(name).await?)?;
    let conditions = seen["status"]["conditions"].as_array().cloned().unwrap_or_default();
    Ok(conditions.into_iter().find(|condition| condition["type"] == "ReplicaFailure"))
}

async fn scales<K: Replicas + serde::Serialize>(scene: &Scene) -> Result<()> {
    scene.apply(&K::make("many", 0)).await?;
    ready::<K>(scene, "many", 0).await?;
    scene.kubectl(&format!("scale {}/many --replicas=50", K::RESOURCE)).await?;
    ready::<K>(scene, "many", 50).await?;
    assert_eq!(living(scene, "many").await?.len(), 50);
    scene.told("SuccessfulCreate").await?;
    scene.kubectl(&format!("scale {}/many --replicas=0", K::RESOURCE)).await?;
    ready::<K>(scene, "many", 0).await?;
    number_of_pods(scene, "many", 0).await.map(drop)
}

#[test]
fn a_replica_set_scales_from_nothing_to_fifty_and_back() -> Result<()> {
    on_shared_cluster(async |scene| scales::<ReplicaSet>(scene).await)
}

#[test]
fn a_replication_controller_scales_from_nothing_to_fifty_and_back() -> Result<()> {
    on_shared_cluster(async |scene| scales::<ReplicationController>(scene).await)
}

async fn deletes_in_order<K: Replicas + serde::Serialize>(scene: &Scene) -> Result<()> {
    let mut set = K::make("ordered", 3);
    set["spec"]["template"]["metadata"]["annotations"] = json!({"pods.e2e/becomes": "running"});
    scene.apply(&set).await?;
    ready::<K>(scene, "ordered", 3).await?;
    // One pod is cheap to delete, one is not ready; the one that is not ready goes first, then the cheap one.
    let pods = living(scene, "ordered").await?;
    let (cheap, unready, dear) = (&pods[0], &pods[1], &pods[2]);
    let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-10"}}});
    scene.patch::<Pod>(&cheap.name_any(), &cost).await?;
    scene.set_pod_ready(&unready.name_any(), false).await?;
    scene
        .wait_until("the unready pod is seen", DEADLINE, async || {
            let seen = serde_json::to_value(scene.fetch::<K>("ordered").await?)?;
            ensure!(seen["status"]["readyReplicas"] == 2, "{}", seen["status"]);
            Ok(())
        })
        .await?;
    scene.kubectl(&format!("scale {}/ordered --replicas=2", K::RESOURCE)).await?;
    let mut left: Vec<String> = number_of_pods(scene, "ordered", 2).await?.iter().map(uid).collect();
    left.sort();
    let mut expected = [uid(cheap), uid(dear)];
    expected.sort();
    assert_eq!(left, expected, "the pod that is not ready goes first");
    scene.kubectl(&format!("scale {}/ordered --replicas=1", K::RESOURCE)).await?;
    let left: Vec<String> = number_of_pods(scene, "ordered", 1).await?.iter().map(uid).collect();
    assert_eq!(left, [uid(dear)], "the cheap pod goes next");
    Ok(())
}

#[test]
fn a_replica_set_deletes_unready_pods_first_and_then_cheap_ones() -> Result<()> {
    without_kubelets(async |scene| deletes_in_order::<ReplicaSet>(scene).await)
}

#[test]
fn a_replication_controller_deletes_unready_pods_first_and_then_cheap_ones() -> Result<()> {
    without_kubelets(async |scene| deletes_in_order::<ReplicationController>(scene).await)
}

async fn adopts_and_releases<K: Replicas + serde::Serialize>(scene: &Scene) -> Result<()> {
    let mut orphan =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "orphan", "labels": {"app": "web"}}});
    orphan["spec"] = template("web")["spec"].clone();
    scene.apply(&orphan).await?;
    scene.apply(&K::make("web", 2)).await?;
    let owner = ready::<K>(scene, "web", 2).await?;
    let adopted: Pod = scene.fetch("orphan").await?;
    let references = adopted.owner_references();
    assert_eq!(references.len(), 1, "{references:?}");
    assert_eq!(
        (references[0].uid.as_str(), references[0].controller),
        (owner["metadata"]["uid"].as_str().unwrap(), Some(true))
    );

    scene.patch::<Pod>("orphan", &json!({"metadata": {"labels": {"app": "debugged"}}})).await?;
    scene
        .wait_until("the pod is released", DEADLINE, async || {
            let released: Pod = scene.fetch("orphan").await?;
            ensure!(released.owner_references().is_empty(), "still owned");
            ensure!(is_ready(&released), "no longer ready");
            Ok(())
        })
        .await?;
    // Its place is taken; the status may still be the one from before.
    number_of_pods(scene, "web", 2).await?;
    ready::<K>(scene, "web", 2).await.map(drop)
}

#[test]
fn a_replica_set_adopts_and_releases_pods_by_their_labels() -> Result<()> {
    on_shared_cluster(async |scene| adopts_and_releases::<ReplicaSet>(scene).await)
}

#[test]
fn a_replication_controller_adopts_and_releases_pods_by_their_labels() -> Result<()> {
    on_shared_cluster(async |scene| adopts_and_releases::<ReplicationController>(scene).await)
}

async fn reports_quota<K: Replicas + serde::Serialize>(scene: &Scene) -> Result<()> {
    scene.limit_pods("few", 2).await?;
    scene.apply(&K::make("web", 4)).await?;
    let condition = scene
        .wait_until("the denial is reported", DEADLINE, async || {
            failure::<K>(scene, "web").await?.ok_or_else(|| anyhow::anyhow!("no ReplicaFailure"))
        })
        .await?;
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("FailedCreate")));
    assert!(condition["message"].as_str().unwrap().contains("exceeded quota: few"), "{condition}");
    number_of_pods(scene, "web", 2).await?;
    let events = scene.told("FailedCreate").await?;
    assert!(events.iter().all(|event| event.type_.as_deref() == Some("Warning")), "{events:?}");

    scene.limit_pods("few", 10).await?;
    ready::<K>(scene, "web", 4).await?;
    scene
        .wait_until("the condition goes", DEADLINE, async || {
            let left = failure::<K>(scene, "web").await?;
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await
}

#[test]
fn a_replica_set_reports_a_quota_and_recovers() -> Result<()> {
    on_shared_cluster(async |scene| reports_quota::<ReplicaSet>(scene).await)
}

#[test]
fn a_replication_controller_reports_a_quota_and_recovers() -> Result<()> {
    on_shared_cluster(async |scene| reports_quota::<ReplicationController>(scene).await)
}

#[test]
fn pods_refused_by_admission_are_reported_and_hold_up_nobody_else() -> Result<()> {
    on_shared_cluster(async |scene| {
        let policy = scene.namespace.clone();
        scene.apply(&refuse_banned_pods(&policy)).await?;
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": policy},
            "spec": {"policyName": policy, "validationActions": ["Deny"], "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}}},
        });
        scene.apply(&binding).await?;
        let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "labels": {"app": "banned"}},
            "spec": template("banned")["spec"]});
        scene
            .wait_until("the policy is in force", DEADLINE, async || {
                if scene.apply(&probe).await.is_ok() {
                    scene.delete_pod("probe").await?;
                    anyhow::bail!("the pod was admitted");
                }
                Ok(())
            })
            .await?;

        scene.apply(&ReplicaSet::make("banned", 3)).await?;
        scene.apply(&ReplicaSet::make("welcome", 3)).await?;
        ready::<ReplicaSet>(scene, "welcome", 3).await?;
        let condition = scene
            .wait_until("the refusal is reported", DEADLINE, async || {
                failure::<ReplicaSet>(scene, "banned").await?.ok_or_else(|| anyhow::anyhow!("no ReplicaFailure"))
            })
            .await?;
        assert!(condition["message"].as_str().unwrap().contains("nobody wants this pod"), "{condition}");

        scene.cluster.kubectl(["delete", "validatingadmissionpolicybinding", &policy]).await?;
        scene.cluster.kubectl(["delete", "validatingadmissionpolicy", &policy]).await?;
        ready::<ReplicaSet>(scene, "banned", 3).await.map(drop)
    })
}

fn refuse_banned_pods(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]},
            ]},
            "validations": [{
                "expression": "!has(object.metadata.labels) || !('app' in object.metadata.labels) || \
                               object.metadata.labels['app'] != 'banned'",
                "message": "nobody wants this pod",
            }],
        },
    })
}

#[test]
fn pods_that_fail_are_replaced() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&ReplicaSet::make("web", 3)).await?;
        ready::<ReplicaSet>(scene, "web", 3).await?;
        let lost = living(scene, "web").await?.remove(0);
        scene.end_pod(&lost.name_any(), 137).await?;
        scene
            .wait_until("three pods besides the failed one", DEADLINE, async || {
                let pods = living(scene, "web").await?;
                let ready = pods.iter().filter(|pod| is_ready(pod) && uid(*pod) != uid(&lost)).count();
                ensure!(ready == 3, "{ready} of {}", pods.len());
                Ok(())
            })
            .await
    })
}

/// When the pods of an app were created, in order.
async fn creations(scene: &Scene, app: &str) -> Result<Vec<i64>> {
    let pods: Vec<Pod> = scene.list(&format!("app={app}")).await?;
    let created = pods.iter().filter_map(|pod| Some(pod.metadata.creation_timestamp.as_ref()?.0.as_second()));
    let mut created: Vec<i64> = created.collect();
    created.sort_unstable();
    Ok(created)
}

/// Rejected pods stay until somebody cleans up, so they show how often there was another one.
async fn waits_for_nodes_that_reject<K: Replicas + serde::Serialize>(scene: &Scene) -> Result<()> {
    let mut set = K::make("rejected", 3);
    set["spec"]["template"]["metadata"]["annotations"] = json!({"pods.e2e/becomes": "refused"});
    scene.apply(&set).await?;
    let created = scene
        .wait_until("12 pods were rejected", DEADLINE, async || {
            let created = creations(scene, "rejected").await?;
            ensure!(created.len() >= 12, "{created:?}");
            Ok(created)
        })
        .await?;
    // Delays of one second and of two, and whole seconds.
    assert!(created[11] - created[0] >= 2, "{created:?}");
    let events = scene.told("RejectedPodBackoff").await?;
    assert_eq!(events.len(), 1, "{events:?}");

    scene.apply(&K::make("welcome", 3)).await?;
    ready::<K>(scene, "welcome", 3).await?;
    let welcome = json!({"metadata": {"annotations": {"pods.e2e/becomes": null}}});
    scene.patch::<K>("rejected", &json!({"spec": {"template": welcome}})).await?;
    ready::<K>(scene, "rejected", 3).await?;
    let made = creations(scene, "rejected").await?.len();
    assert!(made <= 40, "{made} pods");
    Ok(())
}

#[test]
fn a_replica_set_waits_for_nodes_that_reject_its_pods() -> Result<()> {
    without_kubelets(async |scene| waits_for_nodes_that_reject::<ReplicaSet>(scene).await)
}

#[test]
fn a_replication_controller_waits_for_nodes_that_reject_its_pods() -> Result<()> {
    without_kubelets(async |scene| waits_for_nodes_that_reject::<ReplicationController>(scene).await)
}
