//! A Node gets a CIDR. Another one is told that none is left, until a Node that had all of them has gone.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const FIRST: &str = "e2e-first";
const ALL: &str = "e2e-all";
/// And a number.
const WAITING: &str = "e2e-waiting";
/// `--cluster-cidr` of local clusters.
const CLUSTER_CIDR: &str = "10.64.0.0/10";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    create(&nodes, FIRST, &json!({})).await?;
    has_cidr(scene, &nodes, FIRST).await?;
    create(&nodes, ALL, &json!({"podCIDR": CLUSTER_CIDR, "podCIDRs": [CLUSTER_CIDR]})).await?;
    let others = wait_in_vain(scene, &nodes).await?;
    delete(&nodes, ALL).await?;
    for other in &others {
        has_cidr(scene, &nodes, other).await?;
        delete(&nodes, other).await?;
    }
    delete(&nodes, FIRST).await
}

async fn create(nodes: &Api<Node>, name: &str, spec: &Value) -> Result<()> {
    let node = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
    nodes.create(&PostParams::default(), &node).await.map(drop).with_context(|| format!("create {name}"))
}

async fn delete(nodes: &Api<Node>, name: &str) -> Result<()> {
    nodes.delete(name, &DeleteParams::default()).await.map(drop).with_context(|| format!("delete {name}"))
}

async fn cidrs(nodes: &Api<Node>, name: &str) -> Result<Vec<String>> {
    let spec = nodes.get(name).await.with_context(|| format!("get {name}"))?.spec;
    Ok(spec.and_then(|spec| spec.pod_cidrs).unwrap_or_default())
}

async fn has_cidr(scene: &Scene, nodes: &Api<Node>, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} has a CIDR"), DEADLINE, async || {
            let cidrs = cidrs(nodes, name).await?;
            ensure!(cidrs.len() == 1, "{cidrs:?}");
            Ok(())
        })
        .await
}

/// Creates Nodes until one is told that there is no CIDR for it; more than once, so that an event is counted up.
async fn wait_in_vain(scene: &Scene, nodes: &Api<Node>) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(scene.client.clone(), "default");
    let mut names: Vec<String> = Vec::new();
    scene
        .wait_until("a Node is told that there is no CIDR", DEADLINE, async || {
            // kube-controller-manager gives away the CIDR of a Node that goes, although another one has all; and it may
            // look at a new Node before it looks at that one.
            let has_one = match names.last() {
                Some(name) => !cidrs(nodes, name).await?.is_empty(),
                None => true,
            };
            if has_one {
                let name = format!("{WAITING}-{}", names.len());
                create(nodes, &name, &json!({})).await?;
                names.push(name);
            }
            let name = names.last().map_or("", String::as_str);
            let about = ListParams::default().fields(&format!("reason=CIDRNotAvailable,involvedObject.name={name}"));
            let count = events.list(&about).await?.items.iter().filter_map(|event| event.count).max();
            ensure!(count > Some(1), "{name}: {count:?} times");
            Ok(())
        })
        .await?;
    Ok(names)
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    super::add_node(scene, "unassigned", &json!({"node.alpha.kubernetes.io/ttl": "0"}), &json!({})).await?;
    Ok("patch nodes unassigned: spec.podCIDR: ".to_owned())
}
