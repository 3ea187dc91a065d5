//! A StatefulSet's life: rolled out up to a partition, undone, cleaned up, orphaned and adopted; one whose claims go
//! with their pods; and one that gets over a broken template.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::{DEADLINE, Scene, template};

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let web = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
            "template": template("web"), "updateStrategy": {"rollingUpdate": {"partition": 1}},
        },
    });
    scene.apply(&web).await?;
    settled(scene, 2).await?;
    scene.kubectl("set env statefulset/web STEP=2").await?;
    settled(scene, 1).await?;
    make_a_pod_of_the_current_revision(scene).await?;
    scene.kubectl("rollout undo statefulset/web").await?;
    settled(scene, 2).await?;
    scene.patch::<StatefulSet>("web", &json!({"spec": {"revisionHistoryLimit": 0}})).await?;
    scene
        .wait_until("one revision is left", DEADLINE, async || {
            let revisions: Vec<ControllerRevision> = scene.list("app=web").await?;
            ensure!(revisions.len() == 1, "{} revisions", revisions.len());
            Ok(())
        })
        .await?;
    scene.kubectl("delete statefulset/web --cascade=orphan").await?;
    scene.apply(&web).await?;
    settled(scene, 2).await?;
    delete_claims_with_their_pods(scene).await?;
    get_over_a_broken_template(scene).await
}

/// Waits until so many pods are updated, and all are ready.
async fn settled(scene: &Scene, updated: i32) -> Result<()> {
    scene
        .wait_until(&format!("{updated} pods are updated, and all are ready"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch("web").await?;
            let status = set.status.clone().unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let counts = (status.replicas, status.ready_replicas, status.updated_replicas);
            ensure!(is_seen && counts == (2, Some(2), Some(updated)), "{status:?}");
            Ok(())
        })
        .await
}

/// The template of a pod below the partition is in the revision alone.
async fn make_a_pod_of_the_current_revision(scene: &Scene) -> Result<()> {
    let before = scene.fetch::<Pod>("web-0").await?;
    // Another one of its name comes at once, for which kubectl would wait too.
    scene.kubectl("delete pod/web-0 --wait=false").await?;
    scene
        .wait_until("there is another pod of the same revision", DEADLINE, async || {
            let pod = scene.fetch::<Pod>("web-0").await?;
            let revision = |pod: &Pod| pod.labels().get("controller-revision-hash").cloned();
            ensure!(pod.uid() != before.uid() && revision(&pod) == revision(&before), "{:?}", pod.metadata);
            Ok(())
        })
        .await?;
    settled(scene, 1).await
}

/// Nobody binds the claims, so the pods wait: that does not keep claims from having their owners.
async fn delete_claims_with_their_pods(scene: &Scene) -> Result<()> {
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    });
    let db = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db"),
            "podManagementPolicy": "Parallel", "volumeClaimTemplates": [claim],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        },
    });
    scene.apply(&db).await?;
    scene
        .wait_until("the claims are the StatefulSet's", DEADLINE, async || {
            for name in ["data-db-0", "data-db-1"] {
                let claim: PersistentVolumeClaim = scene.fetch(name).await?;
                let kinds: Vec<&str> = claim.owner_references().iter().map(|owner| owner.kind.as_str()).collect();
                ensure!(kinds == ["StatefulSet"], "{name}: {kinds:?}");
            }
            Ok(())
        })
        .await?;
    scene.kubectl("scale statefulset/db --replicas=1").await?;
    scene
        .wait_until("a claim goes with its pod", DEADLINE, async || {
            // A finalizer keeps it, for nobody looks whether it is in use.
            let claim = scene.api::<PersistentVolumeClaim>().get_opt("data-db-1").await?;
            let is_going = claim.as_ref().is_none_or(|claim| claim.metadata.deletion_timestamp.is_some());
            ensure!(is_going, "{claim:?}");
            Ok(())
        })
        .await
}

/// The operator replaces a pod that was never ready. Where kube-controller-manager is at work, a person has to delete
/// it, once the new template is known.
async fn get_over_a_broken_template(scene: &Scene) -> Result<()> {
    let mut broken = template("stuck");
    broken["metadata"]["annotations"] = json!({"pods.e2e/becomes": "never-ready"});
    let stuck = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "stuck", "annotations": {"statefulset.operators.local/replace-stuck-pods": "true"}},
        "spec": {
            "replicas": 1, "serviceName": "stuck", "selector": {"matchLabels": {"app": "stuck"}}, "template": broken,
        },
    });
    scene.apply(&stuck).await?;
    scene
        .wait_until("the pod runs", DEADLINE, async || {
            let status = scene.fetch::<Pod>("stuck-0").await?.status.unwrap_or_default();
            ensure!(status.phase.as_deref() == Some("Running"), "{status:?}");
            Ok(())
        })
        .await?;
    let mended = json!({"spec": {"template": {"metadata": {"annotations": null}}}});
    let generation = scene.patch::<StatefulSet>("stuck", &mended).await?.metadata.generation;
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    if leases.get_opt("statefulset-operator").await?.is_none() {
        scene
            .wait_until("the template is known", DEADLINE, async || {
                let status = scene.fetch::<StatefulSet>("stuck").await?.status.unwrap_or_default();
                ensure!(status.observed_generation == generation, "{status:?}");
                Ok(())
            })
            .await?;
        // Another one of its name comes at once, for which kubectl would wait too.
        scene.kubectl("delete pod/stuck-0 --wait=false").await?;
    }
    scene
        .wait_until("the pod of the new template is ready", DEADLINE, async || {
            let status = scene.fetch::<StatefulSet>("stuck").await?.status.unwrap_or_default();
            let counts = (status.ready_replicas, status.updated_replicas);
            ensure!(counts == (Some(1), Some(1)), "{status:?}");
            Ok(())
        })
        .await
}
