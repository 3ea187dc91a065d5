//! Pods that nobody ends: of no node, of nodes that are out of service or gone, and ended ones beyond a number.
//!
//! A finalizer holds a pod where one wants to see how it was marked. Left out: what the table of every case shows.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, on_shared_cluster, template, with_cluster, without_kubelets};

const OPERATOR: &str = "pod-garbage-collector-operator";
/// A node may be missing for 40 seconds, and nobody has to look at the very moment.
const QUARANTINE: Duration = Duration::from_secs(100);
const HOLD: &str = "e2e.example/hold";

/// A pod that a finalizer holds.
fn held(name: &str, node: &str) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["nodeName"] = json!(node);
    // The taint of a node that is out of service would not let it stay.
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    if node.is_empty() {
        spec["nodeSelector"] = json!({"no-node-has": "this"});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "finalizers": [HOLD]}, "spec": spec})
}

/// A node that nothing runs on: no kubelet, nobody to say that it is ready.
async fn add_node(scene: &Scene, name: &str, taints: &Value) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"taints": taints}}))?;
    nodes.create(&PostParams::default(), &node).await.map(drop).context("create a node")
}

async fn delete_node(scene: &Scene, name: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    nodes.delete(name, &DeleteParams::default()).await.map(drop).context("delete a node")
}

/// The pod, once it has failed and is being deleted without grace.
async fn forced(scene: &Scene, name: &str, deadline: Duration) -> Result<Pod> {
    scene
        .wait_until(&format!("{name} is deleted by force"), deadline, async || {
            let pod: Pod = scene.fetch(name).await?;
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let grace = pod.metadata.deletion_grace_period_seconds;
            ensure!(phase == Some("Failed") && grace == Some(0), "{phase:?} {grace:?}");
            Ok(pod)
        })
        .await
}

async fn let_go(scene: &Scene, name: &str) -> Result<()> {
    scene.patch::<Pod>(name, &json!({"metadata": {"finalizers": null}})).await?;
    scene.gone::<Pod>(name).await
}

fn disruption_target(pod: &Pod) -> Option<(String, String)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget")?;
    Some((condition.reason.clone().unwrap_or_default(), condition.message.clone().unwrap_or_default()))
}

#[test]
fn a_deleted_pod_that_no_node_ever_had_goes() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&held("nowhere", "")).await?;
        scene.kubectl("delete pod/nowhere --wait=false").await?;
        let pod = forced(scene, "nowhere", DEADLINE).await?;
        assert_eq!(disruption_target(&pod), None);
        assert_eq!(pod.status.and_then(|status| status.observed_generation), pod.metadata.generation);
        let_go(scene, "nowhere").await
    })
}

#[test]
fn a_deleted_pod_goes_once_its_node_is_out_of_service() -> Result<()> {
    without_kubelets(async |scene| {
        let node = format!("{}-node", scene.namespace);
        add_node(scene, &node, &json!([])).await?;
        scene.apply(&held("stuck", &node)).await?;
        scene.apply(&held("stays", &node)).await?;
        scene.kubectl("delete pod/stuck --wait=false").await?;
        // Somebody may still turn it on again, until a person says that nobody will.
        scene.apply(&held("nowhere", "")).await?;
        scene.kubectl("delete pod/nowhere --wait=false").await?;
        forced(scene, "nowhere", DEADLINE).await?;
        let stuck: Pod = scene.fetch("stuck").await?;
        assert_eq!(stuck.status.and_then(|status| status.phase).as_deref(), Some("Pending"));

        let taint = json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}});
        let nodes: Api<Node> = Api::all(scene.client.clone());
        nodes.patch(&node, &PatchParams::default(), &Patch::Merge(taint)).await.context("taint the node")?;
        let pod = forced(scene, "stuck", DEADLINE).await?;
        assert_eq!(disruption_target(&pod), None);
        let_go(scene, "stuck").await?;
        let stays: Pod = scene.fetch("stays").await?;
        assert_eq!(stays.metadata.deletion_timestamp, None, "nobody has deleted it");
        let_go(scene, "nowhere").await?;
        delete_node(scene, &node).await
    })
}

#[test]
fn the_pods_of_a_node_that_is_gone_go_unless_it_comes_back() -> Result<()> {
    without_kubelets(async |scene| {
        let [gone_for_good, comes_back] = ["gone", "back"].map(|name| format!("{}-{name}", scene.namespace));
        for (node, pod) in [(&gone_for_good, "orphan"), (&comes_back, "saved")] {
            add_node(scene, node, &json!([])).await?;
            scene.apply(&held(pod, node)).await?;
            delete_node(scene, node).await?;
        }
        // One that has ended stays what it is.
        scene.apply(&held("ended", &gone_for_good)).await?;
        scene.end_pod("ended", 0).await?;
        add_node(scene, &comes_back, &json!([])).await?;

        let pod = forced(scene, "orphan", QUARANTINE).await?;
        let told = ("DeletionByPodGC".to_owned(), "PodGC: node no longer exists".to_owned());
        assert_eq!(disruption_target(&pod), Some(told));
        let_go(scene, "orphan").await?;
        scene
            .wait_until("the ended pod is deleted too", DEADLINE, async || {
                let ended: Pod = scene.fetch("ended").await?;
                ensure!(ended.metadata.deletion_timestamp.is_some(), "it is not");
                let phase = ended.status.as_ref().and_then(|status| status.phase.as_deref());
                assert_eq!((phase, disruption_target(&ended)), (Some("Succeeded"), None));
                Ok(())
            })
            .await?;
        let saved: Pod = scene.fetch("saved").await?;
        assert_eq!(saved.metadata.deletion_timestamp, None, "its node is there");
        let_go(scene, "ended").await?;
        delete_node(scene, &comes_back).await
    })
}

#[test]
fn of_the_pods_that_have_ended_the_newest_stay() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        add_node(scene, "bare", &json!([])).await?;
        // Evicted ones go first, whatever their age.
        for name in ["a", "b", "c", "evicted", "pending"] {
            let mut pod = held(name, "bare");
            pod["metadata"]["finalizers"] = json!([]);
            scene.apply(&pod).await?;
            if name != "pending" {
                let reason = if name == "evicted" { "Evicted" } else { "Error" };
                scene.patch_status::<Pod>(name, &json!({"status": {"phase": "Failed", "reason": reason}})).await?;
            }
        }
        let mut of = spec(&scene.cluster, OPERATOR).await?;
        of.flags = vec!["--terminated-pod-gc-threshold=3".to_owned()];
        let mut operator = scene.cluster.start_operator(&of).await?;
        operator.wait_ready().await?;
        scene.gone::<Pod>("evicted").await?;
        let mut left: Vec<String> = scene.list::<Pod>("").await?.iter().map(ResourceExt::name_any).collect();
        left.sort();
        assert_eq!(left, ["a", "b", "c", "pending"]);
        Ok(())
    })
}
