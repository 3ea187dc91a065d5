//! A DaemonSet's life on one node: rolled out, undone, cleaned up, refused for long enough that one event is counted
//! up, orphaned, and made again while its revision is hidden.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use serde_json::json;

use crate::support::{DEADLINE, Scene, template};

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let mut template = template("web");
    template["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "node-0"});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    scene.apply(&web).await?;
    settled(scene).await?;
    scene.kubectl("set env daemonset/web STEP=2").await?;
    settled(scene).await?;
    scene.kubectl("rollout undo daemonset/web").await?;
    settled(scene).await?;
    scene.patch::<DaemonSet>("web", &json!({"spec": {"revisionHistoryLimit": 0}})).await?;
    let last = only_revision(scene).await?;
    be_refused(scene).await?;
    scene.kubectl("delete daemonset/web --cascade=orphan").await?;
    relabel(scene, &last, "hidden").await?;
    scene.apply(&web).await?;
    settled(scene).await?;
    relabel(scene, &last, "web").await?;
    scene
        .wait_until("the revision is adopted", DEADLINE, async || {
            let revision: ControllerRevision = scene.fetch(&last).await?;
            ensure!(!revision.owner_references().is_empty(), "nobody owns it");
            Ok(())
        })
        .await
}

/// Waits until the pod is of the template of now, and available.
async fn settled(scene: &Scene) -> Result<()> {
    scene
        .wait_until("the pod is updated and available", DEADLINE, async || {
            let set: DaemonSet = scene.fetch("web").await?;
            let status = set.status.clone().unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let counts = (status.desired_number_scheduled, status.updated_number_scheduled, status.number_available);
            ensure!(is_seen && counts == (1, Some(1), Some(1)), "{status:?}");
            Ok(())
        })
        .await
}

/// Waits until there is one revision; gives its name.
async fn only_revision(scene: &Scene) -> Result<String> {
    scene
        .wait_until("one revision is left", DEADLINE, async || {
            let revisions: Vec<ControllerRevision> = scene.list("app=web").await?;
            ensure!(revisions.len() == 1, "{} revisions", revisions.len());
            Ok(revisions[0].name_any())
        })
        .await
}

/// Its pod is deleted, and a limit keeps it from another one for a while.
async fn be_refused(scene: &Scene) -> Result<()> {
    scene.limit_pods("none", 0).await?;
    let pods: Vec<Pod> = scene.list("app=web").await?;
    let pod = pods.first().context("it has no pod")?.name_any();
    scene.kubectl(&format!("delete pod/{pod} --wait=false")).await?;
    scene
        .wait_until("an event is counted up", DEADLINE, async || {
            let events: Vec<Event> = scene.events("FailedCreate").await?;
            let most = events.iter().filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("delete resourcequota/none").await?;
    settled(scene).await
}

/// Changes the label by which the DaemonSet finds its revision. Meanwhile its name is taken by the very same data.
async fn relabel(scene: &Scene, revision: &str, app: &str) -> Result<()> {
    scene.patch::<ControllerRevision>(revision, &json!({"metadata": {"labels": {"app": app}}})).await.map(drop)
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.patch_status::<DaemonSet>("daemon-0", &json!({"status": {"numberReady": 0}})).await?;
    Ok(format!("patch daemonsets.apps/status {}/daemon-0: status.numberReady: ", scene.namespace))
}
