//! A node is tainted twice: each time a pod goes, and one that could stay for a while stays. Then the taint of a lost node
//! ends a pod.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template};

/// A node without a kubelet.
const NODE: &str = "evicting";
const KEY: &str = "e2e.example/evict";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": NODE}}))?;
    nodes.create(&PostParams::default(), &node).await.context("create a node")?;
    let for_an_hour = json!([{"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}]);
    scene.apply(&pod("stays", &for_an_hour)).await?;
    for round in 1..=2 {
        scene.apply(&pod("goes", &json!([]))).await?;
        taint(&nodes, &json!([{"key": KEY, "effect": "NoExecute"}])).await?;
        scene.gone::<Pod>("goes").await?;
        taint(&nodes, &json!([])).await?;
        cancelled(scene, round).await?;
    }
    let at_once = json!([{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]);
    scene.apply(&pod("lost", &at_once)).await?;
    taint(&nodes, &json!([{"key": UNREACHABLE, "effect": "NoExecute"}])).await?;
    scene.gone::<Pod>("lost").await?;
    scene.kubectl("delete pod/stays").await?;
    nodes.delete(NODE, &DeleteParams::default()).await.map(drop).context("delete the node")
}

/// A pod on that node that ends without a kubelet.
fn pod(name: &str, tolerations: &Value) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["nodeName"] = json!(NODE);
    spec["terminationGracePeriodSeconds"] = json!(0);
    spec["tolerations"] = tolerations.clone();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

async fn taint(nodes: &Api<Node>, taints: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes.patch(NODE, &PatchParams::default(), &patch).await.map(drop).context("taint the node")
}

/// Waits until people were told so often that the pod stays.
async fn cancelled(scene: &Scene, times: i32) -> Result<()> {
    scene
        .wait_until("the deletion is cancelled", DEADLINE, async || {
            let events: Vec<Event> = scene.events("TaintManagerEviction").await?;
            let about = format!("Cancelling deletion of Pod {}/stays", scene.namespace);
            let about_it = events.iter().filter(|event| event.message.as_ref() == Some(&about));
            let told: i32 = about_it.filter_map(|event| event.count).sum();
            ensure!(told >= times, "{told} times");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    // Node and pod come together, so that no controller has seen them before.
    let taints = json!([{"key": KEY, "effect": "NoExecute"}]);
    super::add_node(scene, "tainted", &json!({}), &json!({"taints": taints})).await?;
    let mut spec = template("tainted")["spec"].clone();
    spec["nodeName"] = json!("tainted");
    scene.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tainted"}, "spec": spec})).await?;
    Ok(format!("patch pods/status {}/tainted: status.conditions", scene.namespace))
}
