//! DaemonSets: updated node by node, a share of the nodes at a time, with a surge and by hand, and undone; on nodes
//! that are cordoned, relabelled and tainted; with pods that end, and with a revision whose name is taken.
//!
//! Each life has nodes of its own, called after its namespace: the other life does not notice what becomes of them.
//! Left out: taints that end pods which do not tolerate them. The controller of taints ends these too, and either may
//! be faster.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use futures::try_join;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::{all, compare, mask, without_hashes};
use crate::support::{DEADLINE, Scene, daemon_set};

/// The label of a life's nodes, with its namespace.
const OF: &str = "e2e.example/of";
/// The label by which DaemonSets choose among them.
const DISK: &str = "e2e.example/disk";
/// The key of a taint that ends pods.
const DRAINED: &str = "e2e.example/drained";
/// The key of a taint that keeps pods away.
const FULL: &str = "e2e.example/full";

/// A life's nodes, and their disks.
const NODES: [(&str, &str); 5] = [("a", "ssd"), ("b", "ssd"), ("c", "hdd"), ("d", "tape"), ("e", "floppy")];

fn node(scene: &Scene, name: &str) -> String {
    format!("{}-{name}", scene.namespace)
}

/// A DaemonSet for the nodes with such a disk, with these fields of its spec besides. Its pods have no token: the
/// volume of one has a random name.
fn set(scene: &Scene, name: &str, disk: &str, fields: &Value) -> Value {
    let mut set = daemon_set(name, fields);
    let pods = &mut set["spec"]["template"]["spec"];
    pods["automountServiceAccountToken"] = json!(false);
    pods["nodeSelector"] = json!({OF: scene.namespace, DISK: disk});
    set
}

async fn live(scene: &Scene) -> Result<()> {
    try_join_all(NODES.into_iter().map(async |(name, disk)| {
        let labels = [(OF, scene.namespace.as_str()), (DISK, disk)];
        scene.cluster.add_node(&node(scene, name), &labels).await
    }))
    .await?;
    // No two of these are about the same node, or they tolerate it.
    try_join!(one_at_a_time(scene), by_affinity(scene), surging(scene), tainted(scene), ending(scene))?;
    collide(scene).await
}

/// Updated, undone, and updated once more while a node is cordoned.
async fn one_at_a_time(scene: &Scene) -> Result<()> {
    let fields = json!({"revisionHistoryLimit": 1, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}});
    scene.apply(&set(scene, "web", "ssd", &fields)).await?;
    scene.covered("web", (2, 2)).await?;
    scene.kubectl("set env daemonset/web STEP=2").await?;
    scene.covered("web", (2, 2)).await?;
    scene.kubectl("rollout undo daemonset/web").await?;
    scene.covered("web", (2, 2)).await?;
    let node = node(scene, "b");
    scene.kubectl(&format!("cordon {node}")).await?;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    scene
        .wait_until("the cordoned node is tainted", DEADLINE, async || {
            let taints = nodes.get(&node).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
            ensure!(taints.iter().any(|taint| taint.key == "node.kubernetes.io/unschedulable"), "{taints:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("set env daemonset/web STEP=3").await?;
    scene.covered("web", (2, 2)).await?;
    scene.kubectl(&format!("uncordon {node}")).await.map(drop)
}

/// For the nodes that its affinity allows, with tolerations of which one is every daemon's; a node leaves and comes
/// back.
async fn by_affinity(scene: &Scene) -> Result<()> {
    let disk = |operator: &str, values: &Value| json!({"key": DISK, "operator": operator, "values": values});
    let nodes = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [disk("In", &json!(["ssd"]))]},
            {"matchExpressions": [disk("Exists", &json!([])), disk("NotIn", &json!(["tape", "floppy"]))]},
        ]},
        "preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1, "preference": {"matchExpressions": [disk("In", &json!(["hdd"]))]}}],
    });
    let mut wide = set(scene, "wide", "any", &json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}));
    let pods = &mut wide["spec"]["template"]["spec"];
    pods["nodeSelector"] = json!({OF: scene.namespace});
    pods["affinity"] = json!({"nodeAffinity": nodes});
    pods["hostNetwork"] = json!(true);
    pods["tolerations"] = json!([
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
        {"key": FULL, "operator": "Equal", "value": "yes"},
    ]);
    scene.apply(&wide).await?;
    scene.covered("wide", (3, 3)).await?;
    scene.kubectl("set env daemonset/wide STEP=2").await?;
    scene.covered("wide", (3, 3)).await?;
    let node = node(scene, "c");
    scene.kubectl(&format!("label node {node} {DISK}-")).await?;
    scene.covered("wide", (2, 2)).await?;
    scene.kubectl(&format!("label node {node} {DISK}=hdd")).await?;
    scene.covered("wide", (3, 3)).await
}

async fn surging(scene: &Scene) -> Result<()> {
    let surge = json!({"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}});
    scene.apply(&set(scene, "over", "ssd", &json!({"minReadySeconds": 1, "updateStrategy": surge}))).await?;
    scene.covered("over", (2, 2)).await?;
    scene.kubectl("set env daemonset/over STEP=2").await?;
    scene.covered("over", (2, 2)).await
}

/// Both are about one node, and its taints.
async fn tainted(scene: &Scene) -> Result<()> {
    let node = node(scene, "d");
    by_hand(scene, &node).await?;
    away(scene, &node).await
}

/// Only what somebody deletes is replaced, and what is where it should not be goes.
async fn by_hand(scene: &Scene, node: &str) -> Result<()> {
    let mut byhand = set(scene, "byhand", "tape", &json!({"updateStrategy": {"type": "OnDelete"}}));
    byhand["spec"]["template"]["spec"]["tolerations"] = json!([{"key": DRAINED, "operator": "Exists"}]);
    scene.apply(&byhand).await?;
    scene.covered("byhand", (1, 1)).await?;
    let intolerant = json!({"spec": {"template": {"spec": {"tolerations": null}}}});
    scene.patch::<DaemonSet>("byhand", &intolerant).await?;
    scene.covered("byhand", (1, 0)).await?;
    // The pod tolerates it still, so that this controller alone ends it.
    scene.kubectl(&format!("taint node {node} {DRAINED}:NoExecute")).await?;
    scene.covered("byhand", (0, 0)).await?;
    scene.kubectl(&format!("taint node {node} {DRAINED}-")).await?;
    scene.covered("byhand", (1, 1)).await?;
    scene.kubectl("set env daemonset/byhand STEP=2").await?;
    scene.covered("byhand", (1, 0)).await?;
    let pod = only_pod(scene, "byhand").await?;
    scene.kubectl(&format!("delete pod/{pod} --wait=false")).await?;
    scene.covered("byhand", (1, 1)).await
}

/// No pod comes to a node that is full, but for those that tolerate it; one that is there stays until it is replaced.
async fn away(scene: &Scene, node: &str) -> Result<()> {
    scene.apply(&set(scene, "picky", "tape", &json!({}))).await?;
    scene.covered("picky", (1, 1)).await?;
    scene.kubectl(&format!("taint node {node} {FULL}=yes:NoSchedule")).await?;
    let mut tough = set(scene, "tough", "tape", &json!({}));
    tough["spec"]["template"]["spec"]["tolerations"] = json!([{"key": FULL, "operator": "Equal", "value": "yes"}]);
    scene.apply(&tough).await?;
    scene.covered("tough", (1, 1)).await?;
    scene.kubectl("set env daemonset/picky STEP=2").await?;
    scene.covered("picky", (0, 0)).await?;
    scene.kubectl(&format!("taint node {node} {FULL}-")).await?;
    scene.covered("picky", (1, 1)).await
}

/// A pod that failed, and one that ended well.
async fn ending(scene: &Scene) -> Result<()> {
    scene.apply(&set(scene, "ending", "floppy", &json!({}))).await?;
    scene.covered("ending", (1, 1)).await?;
    for exit_code in [1, 0] {
        let pod = only_pod(scene, "ending").await?;
        scene.end_pod(&pod, exit_code).await?;
        scene.gone::<Pod>(&pod).await?;
        scene.covered("ending", (1, 1)).await?;
    }
    Ok(())
}

async fn only_pod(scene: &Scene, set: &str) -> Result<String> {
    let pods: Vec<Pod> = scene.list(&format!("app={set}")).await?;
    ensure!(pods.len() == 1, "{} pods of {set}", pods.len());
    Ok(pods[0].name_any())
}

/// The name of its revision is taken by other data when a DaemonSet comes for the second time. It is the last one of a
/// life, which ends once the events about it, and with them all that came before, have been posted.
async fn collide(scene: &Scene) -> Result<()> {
    let clash = set(scene, "clash", "floppy", &json!({}));
    scene.apply(&clash).await?;
    scene.covered("clash", (1, 1)).await?;
    let revisions: Vec<ControllerRevision> = scene.list("app=clash").await?;
    let name = revisions.first().context("it has no revision")?.name_any();
    scene.kubectl("delete daemonset/clash --cascade=foreground").await?;
    scene.gone::<ControllerRevision>(&name).await?;
    let taken = json!({"metadata": {"name": name}, "revision": 7, "data": {"taken": "yes"}});
    let taken: ControllerRevision = serde_json::from_value(taken).context("describe a revision")?;
    let revisions = scene.api::<ControllerRevision>();
    revisions.create(&PostParams::default(), &taken).await.context("take the revision's name")?;
    scene.apply(&clash).await?;
    scene.covered("clash", (1, 1)).await?;
    let count = scene.fetch::<DaemonSet>("clash").await?.status.and_then(|status| status.collision_count);
    ensure!(count == Some(1), "{count:?} collisions");
    scene
        .wait_until("both of its pods have been told of", DEADLINE, async || {
            let mut told = scene.events("SuccessfulCreate").await?;
            told.retain(|event| event.involved_object.name.as_deref() == Some("clash"));
            ensure!(told.len() == 2, "{} events", told.len());
            Ok(())
        })
        .await
}

/// The hash in each revision's name, and what to call it: the DaemonSet and the revision's number.
async fn hashes(scene: &Scene) -> Result<Vec<(String, String)>> {
    let revisions: Vec<ControllerRevision> = scene.list("").await?;
    let named = |revision: &ControllerRevision| {
        let name = revision.name_any();
        let (set, hash) = name.rsplit_once('-')?;
        Some((hash.to_owned(), format!("<{set} {}>", revision.revision)))
    };
    Ok(revisions.iter().filter_map(named).collect())
}

/// A line for each of what is left. Pods are told apart by their nodes, to which they are pinned.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    let mut objects = all::<DaemonSet>(scene).await?;
    objects.extend(all::<ControllerRevision>(scene).await?);
    for pod in scene.list::<Pod>("").await? {
        let mut shown = serde_json::to_value(pod)?;
        mask(&mut shown);
        shown["metadata"]["name"] = json!("?");
        shown.as_object_mut().map(|fields| fields.remove("status"));
        objects.push(shown);
    }
    let mut lines = Vec::new();
    for object in objects {
        lines.push(serde_json::to_string_pretty(&object)?.replace(&scene.namespace, "<namespace>"));
    }
    Ok(without_hashes(lines, &hashes(scene).await?))
}

#[test]
fn the_operator_leaves_of_daemon_sets_what_upstream_leaves() -> Result<()> {
    compare(&live, &left, &["daemonset-controller"])
}
