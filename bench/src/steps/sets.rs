//! StatefulSets, DaemonSets, and the budgets of rolling pods, on a thousand nodes.
//! Left out: claims of StatefulSets, which nobody binds here, and evictions: there is nobody who drains.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::workloads::{deployment, template_patch};
use crate::about::{About, Target, Targets};
use crate::measure::{Bench, LARGE, NAMESPACE, PROBE, SETTLE, create, in_parallel, small};
use crate::options::BenchOptions;
use crate::sizes::SetsSizes;

/// The steps by their names, in the groups in which they build on each other.
const PARALLEL_STEPS: [&str; 3] = ["create one Parallel StatefulSet", "roll it", "scale it to 0"];
const ORDERED_STEP: &str = "create many ordered StatefulSets";
const DAEMON_STEPS: [&str; 3] = ["create a DaemonSet", "roll the DaemonSet", "heartbeats of all nodes"];
const BUDGET_STEPS: [&str; 3] =
    ["create budgets", "roll the pods of all budgets", "roll the pods of all budgets of a share"];

/// Pods of each small StatefulSet, which come and go one after the other.
const ORDERED_PODS: i32 = 3;
/// Pods of each Deployment that has a budget.
const BUDGET_PODS: i32 = 10;

const TARGETS: Targets = Targets {
    ratios: &[
        Target::TIME,
        Target::CPU,
        Target::apiserver_cpu("at most 1.1"),
        Target::anonymous("at most 0.2"),
        Target::WRITES,
    ],
    each: None,
};

pub(crate) fn about(options: &BenchOptions) -> About {
    let SetsSizes { parallel_pods, ordered, nodes, heartbeats, budgets } = &options.sets;
    About {
        operators: ["statefulset-operator", "daemonset-operator", "disruption-operator"].map(str::to_owned).to_vec(),
        helpers: &["deployment-operator", "replicaset-operator"],
        upstream: "kube-controller-manager",
        controllers: "the statefulset, daemonset and disruption controllers",
        reaction: None,
        steps: format!(
            "a StatefulSet of {parallel_pods} pods with the policy Parallel; its roll, one pod at a time; its scaling \
             to 0; {ordered} ordered\nStatefulSets of {ORDERED_PODS} pods; a DaemonSet on {nodes} nodes; its roll at \
             10 %; {heartbeats} s in which nodes only say that they live, each once by its status and all the time by its Lease;\n{budgets} budgets, each of a Deployment of \
             {BUDGET_PODS} pods, until all of them count these; the roll of all these Deployments,\nuntil budgets \
             count new pods alone; the same with budgets of 10 %, which depend on the scales of owners. Deployments' pods are made by deployment-operator and replicaset-operator for all \
             alike"
        ),
        nodes: *nodes,
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/sets.md",
        targets: Some(TARGETS),
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let &SetsSizes { parallel_pods, ordered, heartbeats, .. } = &bench.options.sets;
    bench.create_namespace(NAMESPACE).await?;
    // Each is at work before it is measured.
    bench.create_stateful_set(PROBE, 1, "OrderedReady").await?;
    bench.create_budget(PROBE, 1).await?;
    bench.wait_stateful_sets(1).await?;
    bench.wait_budgets(1).await?;
    bench.delete_sets().await?;

    if bench.wants(&PARALLEL_STEPS) {
        run_parallel(bench, parallel_pods).await?;
    }
    if bench.wants(&[ORDERED_STEP]) {
        run_ordered(bench, ordered).await?;
    }
    if bench.wants(&DAEMON_STEPS) {
        run_daemons(bench, Duration::from_secs(heartbeats)).await?;
    }
    if bench.wants(&BUDGET_STEPS) {
        run_budgets(bench).await?;
    }
    Ok(())
}

async fn run_ordered(bench: &mut Bench<'_>, ordered: u32) -> Result<()> {
    let in_order = async |bench: &mut Bench<'_>| {
        let one = async |at: u32| bench.create_stateful_set(&small(at), ORDERED_PODS, "OrderedReady").await;
        in_parallel(ordered, one).await?;
        bench.wait_stateful_sets(ORDERED_PODS).await
    };
    bench.measure(ORDERED_STEP, in_order).await?;
    bench.delete_sets().await
}

async fn run_parallel(bench: &mut Bench<'_>, pods: i32) -> Result<()> {
    let create = async |bench: &mut Bench<'_>| {
        bench.create_stateful_set(LARGE, pods, "Parallel").await?;
        bench.wait_stateful_sets(pods).await
    };
    let [create_step, roll_step, scale_step] = PARALLEL_STEPS;
    bench.measure(create_step, create).await?;
    let roll = async |bench: &mut Bench<'_>| {
        bench.patch::<StatefulSet>(LARGE, &template_patch("2")).await?;
        bench.wait_stateful_sets(pods).await
    };
    if bench.wants(&[roll_step]) {
        bench.measure(roll_step, roll).await?;
    }
    let scale_down = async |bench: &mut Bench<'_>| {
        bench.patch::<StatefulSet>(LARGE, &json!({"spec": {"replicas": 0}})).await?;
        bench.wait_none::<Pod>().await
    };
    bench.measure(scale_step, scale_down).await?;
    bench.delete_sets().await
}

async fn run_daemons(bench: &mut Bench<'_>, heartbeats: Duration) -> Result<()> {
    let [create_step, roll_step, heartbeat_step] = DAEMON_STEPS;
    let nodes = i32::try_from(bench.options.sets.nodes)?;
    let create = async |bench: &mut Bench<'_>| {
        create::<DaemonSet>(&bench.api(), daemon_set(LARGE)).await?;
        bench.wait_daemon_set(nodes).await
    };
    bench.measure(create_step, create).await?;
    let roll = async |bench: &mut Bench<'_>| {
        bench.patch::<DaemonSet>(LARGE, &template_patch("2")).await?;
        bench.wait_daemon_set(nodes).await
    };
    if bench.wants(&[roll_step]) {
        bench.measure(roll_step, roll).await?;
    }
    if bench.wants(&[heartbeat_step]) {
        sleep(SETTLE).await;
        bench.measure(heartbeat_step, async |bench: &mut Bench<'_>| bench.write_heartbeats(heartbeats).await).await?;
    }
    bench.delete_sets().await
}

async fn run_budgets(bench: &mut Bench<'_>) -> Result<()> {
    let budgets = bench.options.sets.budgets;
    let all: Vec<(String, i32)> = (0..budgets).map(|at| (small(at), BUDGET_PODS)).collect();
    in_parallel(budgets, async |at| bench.create_deployment(&small(at), BUDGET_PODS).await).await?;
    bench.wait_available(&all).await?;
    let count = async |bench: &mut Bench<'_>| {
        in_parallel(budgets, async |at| bench.create_budget(&small(at), BUDGET_PODS - 1).await).await?;
        bench.wait_budgets(BUDGET_PODS).await
    };
    let [create_step, roll_step, share_step] = BUDGET_STEPS;
    bench.measure(create_step, count).await?;
    let roll = async |bench: &mut Bench<'_>, round: &str| {
        in_parallel(budgets, async |at| bench.patch::<Deployment>(&small(at), &template_patch(round)).await).await?;
        bench.wait_available(&all).await?;
        let pods = i64::from(budgets) * i64::from(BUDGET_PODS);
        bench.wait_until("pods", async || Ok(bench.count::<Pod>().await? == pods)).await?;
        bench.wait_budgets(BUDGET_PODS).await
    };
    if bench.wants(&[roll_step]) {
        bench.measure(roll_step, async |bench: &mut Bench<'_>| roll(bench, "2").await).await?;
    }
    if bench.wants(&[share_step]) {
        let share = json!({"spec": {"minAvailable": null, "maxUnavailable": "10%"}});
        in_parallel(budgets, async |at| bench.patch::<PodDisruptionBudget>(&small(at), &share).await).await?;
        bench.wait_budgets(BUDGET_PODS).await?;
        bench.measure(share_step, async |bench: &mut Bench<'_>| roll(bench, "3").await).await?;
    }
    Ok(())
}

impl Bench<'_> {
    async fn create_stateful_set(&self, name: &str, replicas: i32, policy: &str) -> Result<()> {
        let set = json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "serviceName": name,
                "podManagementPolicy": policy,
                "selector": {"matchLabels": {"app": name}},
                "template": template(name),
            },
        });
        create::<StatefulSet>(&self.api(), set).await.map(drop)
    }

    /// Each node says once within this time, by its status, that it lives. A kubelet does so every five minutes.
    async fn write_heartbeats(&self, time: Duration) -> Result<()> {
        let (nodes, begun): (Api<Node>, _) = (Api::all(self.client.clone()), Instant::now());
        let names = nodes.list_metadata(&ListParams::default()).await?.items.into_iter();
        let names: Vec<String> = names.filter_map(|node| node.metadata.name).collect();
        let apart = time.checked_div(u32::try_from(names.len())?).context("no nodes")?;
        for (name, at) in names.iter().zip(0_u32..) {
            sleep_until(begun + apart * at).await;
            let condition = json!({"type": "Ready", "lastHeartbeatTime": now()});
            let alive = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
            nodes.patch_status(name, &PatchParams::default(), &alive).await?;
        }
        sleep_until(begun + time).await;
        Ok(())
    }

    /// A budget of the pods of this name, of which so many have to stay.
    async fn create_budget(&self, app: &str, stay: i32) -> Result<()> {
        let budget = json!({
            "metadata": {"name": app},
            "spec": {"minAvailable": stay, "selector": {"matchLabels": {"app": app}}},
        });
        create::<PodDisruptionBudget>(&self.api(), budget).await.map(drop)
    }

    async fn delete_sets(&self) -> Result<()> {
        self.delete_all::<PodDisruptionBudget>().await?;
        self.delete_all::<StatefulSet>().await?;
        self.delete_all::<DaemonSet>().await?;
        self.wait_none::<StatefulSet>().await?;
        self.wait_none::<DaemonSet>().await?;
        self.delete_pods().await
    }

    /// Every StatefulSet has so many pods, all of them of its template and available.
    async fn wait_stateful_sets(&self, pods: i32) -> Result<()> {
        self.wait_until("complete", async || {
            let all = self.api::<StatefulSet>().list(&ListParams::default()).await?;
            Ok(all.items.iter().all(|set| {
                let (generation, status) = (set.metadata.generation, set.status.clone().unwrap_or_default());
                let counts = [Some(status.replicas), status.updated_replicas, status.available_replicas];
                let is_rolled = status.current_revision == status.update_revision;
                status.observed_generation == generation && is_rolled && counts == [Some(pods); 3]
            }))
        })
        .await
    }

    /// The DaemonSet has one pod for each node, of its template and available.
    async fn wait_daemon_set(&self, nodes: i32) -> Result<()> {
        self.wait_until("on all nodes", async || {
            let set = self.api::<DaemonSet>().get(LARGE).await?;
            let status = set.status.unwrap_or_default();
            let counts = [status.updated_number_scheduled, status.number_available];
            let is_seen = status.observed_generation == set.metadata.generation;
            Ok(is_seen && status.desired_number_scheduled == nodes && counts == [Some(nodes); 2])
        })
        .await?;
        let pods = i64::from(nodes);
        self.wait_until("pods", async || Ok(self.count::<Pod>().await? == pods)).await
    }

    /// Every budget counts so many healthy pods, and no others.
    async fn wait_budgets(&self, pods: i32) -> Result<()> {
        self.wait_until("counted", async || {
            let all = self.api::<PodDisruptionBudget>().list(&ListParams::default()).await?;
            Ok(all.items.iter().all(|budget| {
                budget.status.as_ref().is_some_and(|status| {
                    let is_seen = status.observed_generation == budget.metadata.generation;
                    is_seen && (status.current_healthy, status.expected_pods) == (Some(pods), Some(pods))
                })
            }))
        })
        .await
    }
}

#[expect(clippy::disallowed_methods, reason = "a heartbeat is of the time that it is")]
fn now() -> String {
    Timestamp::now().to_string()
}

fn template(name: &str) -> Value {
    deployment(name, 1)["spec"]["template"].clone()
}

fn daemon_set(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": template(name),
        },
    })
}
