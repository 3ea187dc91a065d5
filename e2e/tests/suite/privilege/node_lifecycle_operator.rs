//! A node that was ready falls silent: it becomes Unknown, its pod is not ready any more, and pods have to leave it. It
//! has a zone of its own, so that no other node counts.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template};

/// A node without a kubelet.
const NODE: &str = "e2e-silent";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let labels = json!({"kubernetes.io/os": "linux", "topology.kubernetes.io/zone": NODE});
    let node = serde_json::from_value(json!({"metadata": {"name": NODE, "labels": labels}}))?;
    nodes.create(&PostParams::default(), &node).await.context("create a node")?;
    let ready = Patch::Merge(json!({"status": {"conditions": [ready()]}}));
    nodes.patch_status(NODE, &PatchParams::default(), &ready).await.context("make the node ready")?;
    scene.apply(&pod()).await?;
    scene.patch_status::<Pod>("alone", &json!({"status": {"conditions": [ready_pod()]}})).await?;
    // A grace period takes 50 seconds.
    scene
        .wait_until("pods have to leave the node", 3 * DEADLINE, async || {
            let node = nodes.get(NODE).await?;
            let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
            let is_there = |effect: &str| taints.iter().any(|taint| taint.key == UNREACHABLE && taint.effect == effect);
            ensure!(is_there("NoSchedule") && is_there("NoExecute"), "{taints:?}");
            let labels = node.metadata.labels.unwrap_or_default();
            ensure!(labels.contains_key("beta.kubernetes.io/os"), "{labels:?}");
            Ok(())
        })
        .await?;
    scene
        .wait_until("the pod is not ready", DEADLINE, async || {
            let status = scene.fetch::<Pod>("alone").await?.status;
            let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
            ensure!(conditions.iter().any(|is| is.type_ == "Ready" && is.status == "False"), "{conditions:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("delete pod/alone").await?;
    nodes.delete(NODE, &DeleteParams::default()).await.map(drop).context("delete the node")
}

fn ready() -> Value {
    let since = "2026-01-01T00:00:00Z";
    json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": since,
        "lastTransitionTime": since})
}

fn ready_pod() -> Value {
    json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// A pod on that node that ends without a kubelet, and stays until it is deleted.
fn pod() -> Value {
    let mut spec = template("alone")["spec"].clone();
    spec["nodeName"] = json!(NODE);
    spec["terminationGracePeriodSeconds"] = json!(0);
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let labels = json!({"kubernetes.io/arch": "amd64", "beta.kubernetes.io/arch": "other"});
    let other = Patch::Merge(json!({"metadata": {"labels": labels}}));
    nodes.patch("node-0", &PatchParams::default(), &other).await?;
    Ok("patch nodes node-0: metadata.labels[beta.kubernetes.io/arch]: ".to_owned())
}
