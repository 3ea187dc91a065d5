//! A controller handed over on a live cluster, in both directions: neither side replaces a pod or makes a revision of what
//! the other has finished, also where its template has texts and numbers that Go writes in another form.

mod control_planes;
mod daemonset;
mod derived;
mod devices;
mod nodes;
mod storage;

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::ResourceExt;
use kube::api::PostParams;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::scene::Namespaced;
use crate::support::{
    DEADLINE, Scene, deployment, operators, start_operators, stateful_set, template, uid, with_cluster,
};

/// Kind, name and resourceVersion of everything there is in a namespace: equal if nobody has written anything.
pub(crate) async fn versions(scene: &Scene) -> Result<Vec<String>> {
    async fn of<K: Namespaced>(scene: &Scene) -> Result<Vec<String>> {
        let all: Vec<K> = scene.list("").await?;
        let line = |object: &K| {
            let (uid, version) = (object.uid(), object.resource_version());
            format!("{} {} {uid:?} {version:?}", K::kind(&()), object.name_any())
        };
        Ok(all.iter().map(line).collect())
    }
    let mut all = of::<Deployment>(scene).await?;
    all.extend(of::<ReplicaSet>(scene).await?);
    all.extend(of::<ReplicationController>(scene).await?);
    all.extend(of::<StatefulSet>(scene).await?);
    all.extend(of::<DaemonSet>(scene).await?);
    all.extend(of::<ControllerRevision>(scene).await?);
    all.extend(of::<Pod>(scene).await?);
    Ok(all)
}

/// Finished work of three kinds, which has nothing to gain from anybody.
pub(crate) async fn finish_some_work(scene: &Scene) -> Result<()> {
    let controller = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "plain"},
        "spec": {"replicas": 2, "selector": {"app": "plain"}, "template": template("plain")},
    });
    scene.apply(&controller).await?;
    scene.apply(&deployment("web", 3)).await?;
    scene.rolled_out("web").await?;
    scene.kubectl("set env deployment/web STEP=2").await?;
    scene.rolled_out("web").await
}

/// The objects once the last status has been written: the one that no longer counts a pod as terminating.
pub(crate) async fn finished(scene: &Scene) -> Result<Vec<String>> {
    scene
        .wait_until("all is quiet", DEADLINE, async || {
            let plain = scene.fetch::<ReplicationController>("plain").await?.status.unwrap_or_default();
            ensure!(plain.available_replicas == Some(2), "{plain:?}");
            let web = scene.fetch::<Deployment>("web").await?.status.unwrap_or_default();
            ensure!(web.replicas == Some(3) && web.terminating_replicas.unwrap_or(0) == 0, "{web:?}");
            let pods = scene.list::<Pod>("").await?;
            ensure!(pods.len() == 5, "{} pods", pods.len());
            Ok(())
        })
        .await?;
    versions(scene).await
}

/// The Deployment that rolls: its pods take half a second to be ready.
fn moving() -> Value {
    let mut moving = deployment("moving", 20);
    moving["spec"]["template"]["metadata"]["annotations"] =
        json!({"pods.e2e/becomes": "ready-later", "pods.e2e/after": "500ms"});
    moving
}

/// Starts a rollout and returns in its middle: pods take half a second to be ready, so there is time.
async fn roll_half(scene: &Scene, step: u32) -> Result<()> {
    let environment = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "image": "registry.k8s.io/pause:3.10", "env": [{"name": "STEP", "value": step.to_string()}]},
    ]}}}});
    scene.patch::<Deployment>("moving", &environment).await?;
    scene
        .wait_until("the rollout is in its middle", DEADLINE, async || {
            let moving: Deployment = scene.fetch("moving").await?;
            let updated = moving.status.and_then(|status| status.updated_replicas).unwrap_or(0);
            ensure!((3..18).contains(&updated), "{updated} pods are updated");
            Ok(())
        })
        .await
}

#[test]
fn controllers_change_hands_in_the_middle_of_a_rollout_and_back() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        let rest = ControllerManager::without(operators().map(upstream_controller));
        let moves = scene.beside("moves").await?;
        finish_some_work(scene).await?;
        moves.apply(&moving()).await?;
        moves.rolled_out("moving").await?;
        let finished = finished(scene).await?;

        roll_half(&moves, 2).await?;
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(rest).await?;
        let mut operators = start_operators(&scene.cluster, operators()).await?;
        moves.rolled_out("moving").await?;
        assert_eq!(versions(scene).await?, finished, "the operators wrote what needed no write");

        roll_half(&moves, 3).await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        moves.rolled_out("moving").await?;
        assert_eq!(versions(scene).await?, finished, "what the operators left was not what upstream expects");
        let sets: Vec<ReplicaSet> = moves.list("app=moving").await?;
        assert_eq!(sets.len(), 3, "one ReplicaSet a template, whoever made it");
        Ok(())
    })
}

/// Waits until so many of the StatefulSet's pods are updated, and all are ready.
pub(crate) async fn settled(scene: &Scene, name: &str, updated: i32) -> Result<()> {
    scene
        .wait_until(&format!("{updated} pods of {name} are updated"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch(name).await?;
            let status = set.status.unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let is_ready = status.ready_replicas == Some(status.replicas);
            ensure!(is_seen && is_ready && status.updated_replicas == Some(updated), "{status:?}");
            Ok(())
        })
        .await
}

/// A template with texts that Go escapes, a number that no float holds, and fields that no view here has.
fn odd(template: &mut Value) {
    let text = "<a href='x'>&\u{2028}\u{2029} \u{e9}</a>";
    template["metadata"]["annotations"]["odd/text"] = json!(text);
    let toleration = json!({"key": "odd", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9_007_199_254_740_993_i64});
    template["spec"]["tolerations"] = json!([toleration]);
    template["spec"]["resources"] = json!({"limits": {"cpu": "1500m"}});
    template["spec"]["containers"][0]["env"] = json!([{"name": "ODD", "value": text}]);
}

/// Creates an object as JSON: what is applied goes through a reader of YAML, to which some characters mean something.
async fn create<K: Namespaced + Serialize>(scene: &Scene, object: Value) -> Result<()> {
    let object: K = serde_json::from_value(object)?;
    scene.api::<K>().create(&PostParams::default(), &object).await?;
    Ok(())
}

/// The revisions of an app by their numbers.
async fn history(scene: &Scene, app: &str) -> Result<Vec<(i64, String)>> {
    let revisions: Vec<ControllerRevision> = scene.list(&format!("app={app}")).await?;
    let mut history: Vec<(i64, String)> =
        revisions.iter().map(|revision| (revision.revision, revision.name_any())).collect();
    history.sort();
    Ok(history)
}

/// From one template to another and back: what was the first revision is the last one, and there is none besides them.
async fn there_and_back(scene: &Scene, kind: &str, name: &str, settled: impl AsyncFn() -> Result<()>) -> Result<()> {
    settled().await?;
    let begun = history(scene, name).await?;
    for step in ["STEP=2", "STEP-"] {
        scene.kubectl(&format!("set env {kind}/{name} {step}")).await?;
        settled().await?;
    }
    let ended = history(scene, name).await?;
    let ([(1, first)], [(2, _), (3, last)]) = (&begun[..], &ended[..]) else {
        anyhow::bail!("{begun:?} became {ended:?}");
    };
    ensure!(first == last, "{begun:?} became {ended:?}");
    Ok(())
}

/// Finished work: a StatefulSet of two pods that was updated, and the update undone.
async fn finish(scene: &Scene, name: &str) -> Result<()> {
    let mut set = stateful_set(name, 2, &json!({}));
    odd(&mut set["spec"]["template"]);
    create::<StatefulSet>(scene, set).await?;
    there_and_back(scene, "statefulset", name, async || settled(scene, name, 2).await).await
}

/// Begins an update of the six pods above the partition, and returns in its middle.
async fn update_half(scene: &Scene, step: u32) -> Result<()> {
    let annotations = json!({"metadata": {"annotations": {"step": step.to_string()}}});
    scene.patch::<StatefulSet>("moving", &json!({"spec": {"template": annotations}})).await?;
    scene
        .wait_until("the update is in its middle", DEADLINE, async || {
            let moving: StatefulSet = scene.fetch("moving").await?;
            let status = moving.status.unwrap_or_default();
            let updated = status.updated_replicas.unwrap_or(0);
            let is_seen = status.observed_generation == moving.metadata.generation;
            ensure!(is_seen && (1..5).contains(&updated), "{status:?}");
            Ok(())
        })
        .await
}

/// The uids of the pods below the partition, which no update may touch.
async fn kept(scene: &Scene) -> Result<Vec<String>> {
    let mut uids = Vec::new();
    for name in ["moving-0", "moving-1"] {
        uids.push(uid(&scene.fetch::<Pod>(name).await?));
    }
    Ok(uids)
}

#[test]
fn a_stateful_set_changes_hands_in_the_middle_of_a_partitioned_update_and_back() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        let rest = ControllerManager::without(["statefulset-operator"].map(upstream_controller));
        let moves = scene.beside("moves").await?;
        let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 2}}});
        let mut moving = stateful_set("moving", 8, &partition);
        moving["spec"]["template"]["metadata"]["annotations"] =
            json!({"pods.e2e/becomes": "ready-later", "pods.e2e/after": "500ms"});
        moves.apply(&moving).await?;
        finish(scene, "web").await?;
        settled(&moves, "moving", 8).await?;
        let (finished, kept_pods) = (versions(scene).await?, kept(&moves).await?);

        update_half(&moves, 2).await?;
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(rest).await?;
        let mut operators = start_operators(&scene.cluster, ["statefulset-operator"]).await?;
        settled(&moves, "moving", 6).await?;
        assert_eq!(versions(scene).await?, finished, "the operator wrote what needed no write");

        finish(scene, "own").await?;
        let finished = versions(scene).await?;
        update_half(&moves, 3).await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        settled(&moves, "moving", 6).await?;
        assert_eq!(versions(scene).await?, finished, "what the operator left was not what upstream expects");
        assert_eq!(kept(&moves).await?, kept_pods, "a pod below the partition was replaced");
        let revisions: Vec<ControllerRevision> = moves.list("app=moving").await?;
        assert_eq!(revisions.len(), 3, "one revision a template, whoever made it");
        Ok(())
    })
}
