//! Pods on nodes that are tainted: those that do not tolerate it go, others after a while, unless the taint goes first.
//!
//! Left out: the cases that tables of the operator's own tests have.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template, without_kubelets};

const KEY: &str = "e2e.example/evict";
const HOLD: &str = "e2e.example/hold";

/// A pod that tolerates the taint for so many seconds, and that a finalizer holds.
fn held(name: &str, node: &str, seconds: Option<u32>) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["nodeName"] = json!(node);
    let toleration = json!({"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
    spec["tolerations"] = if seconds.is_some() { json!([toleration]) } else { json!([]) };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "finalizers": [HOLD]}, "spec": spec})
}

async fn taint(nodes: &Api<Node>, node: &str, taints: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes.patch(node, &PatchParams::default(), &patch).await.map(drop).context("taint a node")
}

/// Waits until the pod is marked and being deleted.
async fn evicted(scene: &Scene, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} is evicted"), DEADLINE, async || {
            let pod: Pod = scene.fetch(name).await?;
            ensure!(pod.metadata.deletion_timestamp.is_some(), "nobody has deleted it");
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget");
            let told = target.map(|target| (target.reason.as_deref(), target.message.as_deref()));
            let message = "Taint manager: deleting due to NoExecute taint";
            ensure!(told == Some((Some("DeletionByTaintManager"), Some(message))), "{told:?}");
            let observed = target.and_then(|target| target.observed_generation);
            ensure!(observed.is_some_and(|observed| observed > 0), "{observed:?}");
            Ok(())
        })
        .await
}

async fn is_deleted(scene: &Scene, name: &str) -> Result<bool> {
    Ok(scene.fetch::<Pod>(name).await?.metadata.deletion_timestamp.is_some())
}

async fn let_go(scene: &Scene, name: &str) -> Result<()> {
    scene.patch::<Pod>(name, &json!({"metadata": {"finalizers": null}})).await?;
    scene.kubectl(&format!("delete pod/{name} --ignore-not-found --wait=false --grace-period=0 --force")).await?;
    scene.gone::<Pod>(name).await
}

#[test]
fn a_taint_ends_pods_that_do_not_tolerate_it_and_those_that_do_once_their_time_is_over() -> Result<()> {
    without_kubelets(async |scene| {
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let node = format!("{}-tainted", scene.namespace);
        let described = serde_json::from_value(json!({"metadata": {"name": node}}))?;
        nodes.create(&PostParams::default(), &described).await.context("create a node")?;
        let pods = [("now", None), ("soon", Some(3)), ("saved", Some(3600))];
        for (name, seconds) in pods {
            scene.apply(&held(name, &node, seconds)).await?;
        }
        taint(&nodes, &node, &json!([{"key": KEY, "effect": "NoExecute"}])).await?;
        evicted(scene, "now").await?;
        ensure!(!is_deleted(scene, "saved").await?, "it has an hour");
        evicted(scene, "soon").await?;
        taint(&nodes, &node, &json!([])).await?;
        scene
            .wait_until("the last deletion is cancelled", DEADLINE, async || {
                let events = scene.events("TaintManagerEviction").await?;
                let about = format!("Cancelling deletion of Pod {}/saved", scene.namespace);
                ensure!(events.iter().any(|event| event.message.as_ref() == Some(&about)), "{} events", events.len());
                Ok(())
            })
            .await?;
        ensure!(!is_deleted(scene, "saved").await?, "its node ends no pods any more");
        for (name, _) in pods {
            let_go(scene, name).await?;
        }
        nodes.delete(&node, &DeleteParams::default()).await.map(drop).context("delete a node")
    })
}
