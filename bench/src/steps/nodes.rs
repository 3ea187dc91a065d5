//! Nodes that come, rest, are lost with their zone and come back, and lose their pods by a taint.
//! Left out: the loss of pods with their nodes, which the rate of a zone bounds, here as there.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shared::api::taint::UNREACHABLE;

use super::workloads::deployment;
use crate::about::{About, Target, Targets};
use crate::measure::{Bench, NAMESPACE, create, in_parallel, small};
use crate::options::BenchOptions;
use crate::sizes::NodesSizes;

/// As many zones as there are.
const ZONES: u32 = 4;
/// So many pods are on each node that is tainted.
const ON_A_NODE: u32 = 10;
const KEY: &str = "bench/leave";
const TOLERATED_SECONDS: u32 = 5;
const ZONE_STEPS: [&str; 2] = ["lose a zone", "take the zone back"];
const EVICT_STEP: &str = "evict pods";

const TARGETS: Targets = Targets {
    ratios: &[Target::TIME, Target::CPU, Target::anonymous("at most 0.2"), Target::WRITES],
    each: Some("at most 20 ms of CPU in a minute of rest, but for node-lifecycle-operator, which follows every Lease"),
};

pub(crate) fn about(options: &BenchOptions) -> About {
    let NodesSizes { all_nodes, new_nodes, node_rest, evicted } = &options.nodes;
    About {
        operators: ["node-lifecycle-operator", "taint-eviction-operator", "node-ipam-operator", "ttl-operator"]
            .map(str::to_owned)
            .to_vec(),
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the node-lifecycle, taint-eviction, node-ipam and ttl controllers",
        reaction: None,
        steps: format!(
            "{new_nodes} nodes more, until each has a CIDR and pods may come; {node_rest} s in which {all_nodes} nodes \
             only renew their Leases;\nthe kubelets of a zone of {} stop, until each of its nodes is Unknown and \
             tainted, which takes the grace period of 50 s;\nthey go on, until each is ready and untainted; {evicted} \
             pods on {} nodes, which get a taint that these tolerate for\n{TOLERATED_SECONDS} s, until the last pod is \
             gone",
            all_nodes / ZONES,
            evicted / ON_A_NODE,
        ),
        nodes: all_nodes - new_nodes,
        zones: ZONES,
        gated: false,
        flags: &[("node-ipam-operator", "--node-cidr-mask-size=22")],
        page: "docs/benchmarks/nodes.md",
        targets: Some(TARGETS),
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let &NodesSizes { all_nodes, new_nodes, node_rest, evicted } = &bench.options.nodes;
    bench.create_namespace(NAMESPACE).await?;
    // Each is at work before it is measured.
    let before = all_nodes - new_nodes;
    bench.wait_nodes((0..before).collect(), is_complete).await?;

    let add = async |bench: &mut Bench<'_>| {
        bench.cluster.create_nodes(new_nodes).await?;
        bench.wait_nodes((before..all_nodes).collect(), is_complete).await
    };
    bench.measure("give new nodes CIDRs", add).await?;
    bench.measure_rest("rest among many nodes", Duration::from_secs(node_rest)).await?;

    if bench.wants(&ZONE_STEPS) {
        run_zone(bench).await?;
    }
    if bench.wants(&[EVICT_STEP]) {
        run_evictions(bench, evicted).await?;
    }
    Ok(())
}

async fn run_evictions(bench: &mut Bench<'_>, evicted: u32) -> Result<()> {
    // Of a zone that was never lost.
    let tainted: Vec<u32> = (0..evicted / ON_A_NODE).map(|at| at * ZONES + 1).collect();
    bench.create_pods(&tainted).await?;
    let evict = async |bench: &mut Bench<'_>| {
        let taints = json!({"spec": {"taints": [{"key": KEY, "effect": "NoExecute"}]}});
        bench.patch_nodes(&tainted, &taints).await?;
        bench.wait_none::<Pod>().await
    };
    bench.measure(EVICT_STEP, evict).await
}

async fn run_zone(bench: &mut Bench<'_>) -> Result<()> {
    let all_nodes = bench.options.nodes.all_nodes;
    let [lose_step, back_step] = ZONE_STEPS;
    let zone = || (0..all_nodes).filter(|number| number % ZONES == 0).collect::<Vec<u32>>();
    let lose = async |bench: &mut Bench<'_>| {
        bench.set_kubelets(&zone(), false).await?;
        bench.wait_nodes(zone(), is_lost).await
    };
    bench.measure(lose_step, lose).await?;
    let back = async |bench: &mut Bench<'_>| {
        bench.set_kubelets(&zone(), true).await?;
        bench.wait_nodes(zone(), is_complete).await
    };
    bench.measure(back_step, back).await
}

impl Bench<'_> {
    async fn set_kubelets(&self, nodes: &[u32], running: bool) -> Result<()> {
        self.patch_nodes(nodes, &e2e::cluster::kubelet(running)).await
    }

    async fn patch_nodes(&self, numbers: &[u32], patch: &Value) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let one = async |at: u32| {
            let name = name(numbers, at)?;
            let done = nodes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            done.map(drop).with_context(|| format!("patch {name}"))
        };
        in_parallel(u32::try_from(numbers.len())?, one).await
    }

    /// Waits for the first one, and then for all: they take about as long, and to look at all of them again and again
    /// would be work that counts.
    async fn wait_nodes(&self, numbers: Vec<u32>, is_done: fn(&Node) -> bool) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let one = async |at: u32| {
            let name = name(&numbers, at)?;
            self.wait_until(&name, async || Ok(is_done(&nodes.get(&name).await?))).await
        };
        one(0).await?;
        in_parallel(u32::try_from(numbers.len())?, one).await
    }

    /// Ten pods on each of these nodes, which tolerate the taint for a while.
    async fn create_pods(&self, nodes: &[u32]) -> Result<()> {
        let one = async |at: u32| {
            let node = name(nodes, at / ON_A_NODE)?;
            let mut pod = deployment(&small(at), 1)["spec"]["template"].clone();
            pod["metadata"]["name"] = json!(small(at));
            pod["spec"]["nodeName"] = json!(node);
            pod["spec"]["tolerations"] = json!([{"key": KEY, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATED_SECONDS}]);
            create::<Pod>(&self.api(), pod).await.map(drop)
        };
        in_parallel(u32::try_from(nodes.len())? * ON_A_NODE, one).await?;
        self.wait_running().await
    }
}

fn name(numbers: &[u32], at: u32) -> Result<String> {
    let number = numbers.get(usize::try_from(at)?).context("there is no such node")?;
    Ok(format!("node-{number}"))
}

fn ready(node: &Node) -> Option<&str> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|condition| condition.type_ == "Ready").map(|ready| ready.status.as_str())
}

fn taints(node: &Node) -> impl Iterator<Item = &str> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).map(|taint| taint.key.as_str())
}

/// It is ready, and has all that these controllers give it.
fn is_complete(node: &Node) -> bool {
    ready(node) == Some("True")
        && taints(node).next().is_none()
        && node.spec.as_ref().is_some_and(|spec| spec.pod_cidr.is_some())
        && node.annotations().contains_key("node.alpha.kubernetes.io/ttl")
        && node.labels().contains_key("beta.kubernetes.io/os")
}

fn is_lost(node: &Node) -> bool {
    ready(node) == Some("Unknown") && taints(node).any(|key| key == UNREACHABLE)
}
