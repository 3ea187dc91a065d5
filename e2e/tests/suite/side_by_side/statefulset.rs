//! StatefulSets: rolled out up to a partition and undone, scaled, created all at once, replaced by hand, and their claims.
//!
//! Left out: pods that run with a claim. Nobody binds claims here.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{all, compare, mask};
use crate::support::{DEADLINE, Scene, stateful_set};

/// A StatefulSet whose pods have no token: the volume of one has a random name.
fn set(name: &str, fields: &Value) -> Value {
    let mut set = stateful_set(name, 2, fields);
    set["spec"]["template"]["spec"]["automountServiceAccountToken"] = json!(false);
    set
}

async fn live(scene: &Scene) -> Result<()> {
    scene.apply(&set("web", &json!({"revisionHistoryLimit": 1}))).await?;
    settled(scene, "web", (2, 2)).await?;
    scene.kubectl("set env statefulset/web STEP=2").await?;
    settled(scene, "web", (2, 2)).await?;
    let partition = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}});
    scene.patch::<StatefulSet>("web", &partition).await?;
    scene.kubectl("set env statefulset/web STEP=3").await?;
    settled(scene, "web", (2, 1)).await?;
    scene.kubectl("rollout undo statefulset/web").await?;
    settled(scene, "web", (2, 2)).await?;
    scene.kubectl("scale statefulset/web --replicas=3").await?;
    settled(scene, "web", (3, 3)).await?;
    scene.kubectl("scale statefulset/web --replicas=1").await?;
    settled(scene, "web", (1, 1)).await?;

    let at_once = json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}, "minReadySeconds": 1});
    scene.apply(&set("crowd", &at_once)).await?;
    settled(scene, "crowd", (2, 2)).await?;
    by_hand(scene).await?;
    claims(scene).await
}

/// Only what somebody deletes is replaced by the new template.
async fn by_hand(scene: &Scene) -> Result<()> {
    scene.apply(&set("byhand", &json!({"updateStrategy": {"type": "OnDelete"}}))).await?;
    settled(scene, "byhand", (2, 2)).await?;
    scene.kubectl("set env statefulset/byhand STEP=2").await?;
    settled(scene, "byhand", (2, 0)).await?;
    // Another one of its name comes at once, for which kubectl would wait too.
    scene.kubectl("delete pod/byhand-0 --wait=false").await?;
    settled(scene, "byhand", (2, 1)).await
}

/// Claims that stay or go with their pod or with their StatefulSet, in every combination; and a policy that is changed.
async fn claims(scene: &Scene) -> Result<()> {
    let claim = json!({
        "metadata": {"name": "data", "labels": {"of": "db"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    });
    let policy = |when_deleted: &str, when_scaled: &str| json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": when_deleted, "whenScaled": when_scaled}});
    let policies = [("Retain", "Retain"), ("Retain", "Delete"), ("Delete", "Retain"), ("Delete", "Delete")];
    let (mut names, mut expected) = (Vec::new(), Vec::new());
    for (at, (when_deleted, when_scaled)) in policies.into_iter().enumerate() {
        let mut fields = policy(when_deleted, when_scaled);
        fields["podManagementPolicy"] = json!("Parallel");
        fields["volumeClaimTemplates"] = json!([claim]);
        // Of the second one nothing is left but claims.
        for (name, stays) in [(format!("stays{at}"), true), (format!("goes{at}"), when_deleted == "Retain")] {
            scene.apply(&set(&name, &fields)).await?;
            let kept = [stays, stays && when_scaled == "Retain"];
            expected.extend((0..2).filter(|at| kept[*at]).map(|at| format!("data-{name}-{at}")));
            names.push(name);
        }
    }
    for replicas in [2, 1] {
        for name in &names {
            scene.patch::<StatefulSet>(name, &json!({"spec": {"replicas": replicas}})).await?;
        }
        for name in &names {
            created(scene, name, replicas).await?;
        }
    }
    for name in names.iter().filter(|name| name.starts_with("goes")) {
        scene.api::<StatefulSet>().delete(name, &DeleteParams::background()).await?;
    }
    scene.patch::<StatefulSet>("stays0", &json!({"spec": policy("Delete", "Delete")})).await?;
    scene.patch::<StatefulSet>("stays3", &json!({"spec": policy("Retain", "Retain")})).await?;
    expected.sort_unstable();
    scene
        .wait_until("claims are as the policies want them", DEADLINE, async || {
            let claims: Vec<PersistentVolumeClaim> = scene.list("").await?;
            let mut names: Vec<&str> = claims.iter().filter_map(|claim| claim.metadata.name.as_deref()).collect();
            names.sort_unstable();
            ensure!(names == expected, "{names:?} instead of {expected:?}");
            let owned = |name: &str| {
                let found = claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(name));
                found.is_some_and(|claim| !claim.owner_references().is_empty())
            };
            let changed = [owned("data-stays0-0"), owned("data-stays3-0")];
            ensure!(changed == [true, false], "{changed:?}");
            Ok(())
        })
        .await
}

/// Waits until so many pods are ready, and so many of them updated.
async fn settled(scene: &Scene, name: &str, (ready, updated): (i32, i32)) -> Result<()> {
    scene
        .wait_until(&format!("{name} has {ready} pods, {updated} of them updated"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch(name).await?;
            let status = set.status.unwrap_or_default();
            let counts = (status.replicas, status.available_replicas, status.updated_replicas.unwrap_or(0));
            let is_seen = status.observed_generation == set.metadata.generation;
            ensure!(is_seen && counts == (ready, Some(ready), updated), "{status:?}");
            Ok(())
        })
        .await
}

/// Waits until there are so many pods, which need not be ready.
async fn created(scene: &Scene, name: &str, replicas: i32) -> Result<()> {
    scene
        .wait_until(&format!("{name} has {replicas} pods"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch(name).await?;
            let status = set.status.unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            ensure!(is_seen && status.replicas == replicas, "{status:?}");
            Ok(())
        })
        .await
}

/// A line for each of what is left.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    let mut objects = all::<StatefulSet>(scene).await?;
    objects.extend(all::<ControllerRevision>(scene).await?);
    objects.extend(all::<PersistentVolumeClaim>(scene).await?);
    for pod in scene.list::<Pod>("").await? {
        let mut shown = serde_json::to_value(pod)?;
        mask(&mut shown);
        shown.as_object_mut().map(|fields| fields.remove("status"));
        objects.push(shown);
    }
    let mut lines: Vec<String> = objects.iter().map(serde_json::to_string_pretty).collect::<Result<_, _>>()?;
    lines.sort();
    Ok(lines)
}

#[test]
fn the_operator_leaves_of_stateful_sets_what_upstream_leaves() -> Result<()> {
    compare(&live, &left, &["statefulset-controller"])
}
