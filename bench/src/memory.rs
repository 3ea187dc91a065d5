//! The memory of all operators together: each in its own small program, and each in a process of the program of all.
//!
//! Pages that several processes map count once in the sum of their PSS, so the sums are compared.
//! With `--each` every operator is weighed by itself instead.
//! Left out: kube-controller-manager, and any work but following: the other sets measure that.

mod each;
mod options;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::{Cluster, ClusterOptions};
use e2e::operator::{self, Operator};
use e2e::progress::Progress;
use e2e::usage::Usage;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;
use tokio::time::{Instant, sleep};

pub(crate) use options::MemoryOptions;
use options::{DEADLINE, PODS_OF_EACH};

/// How long everything has been still when it is measured.
const REST: Duration = Duration::from_secs(20);

/// Measures, and gives a table of what was measured.
pub(crate) async fn run(options: &MemoryOptions) -> Result<String> {
    if options.each {
        return each::run(options).await;
    }
    let mut table =
        "| programs | pods | processes | PSS MiB | RSS MiB | anonymous MiB |\n|---|---|---|---|---|---|\n".to_owned();
    for (label, is_all_in_one) in [("one each", false), ("one for all", true)] {
        let mut progress = Progress::default();
        progress.finish(label);
        table.push_str(&rows(options, label, is_all_in_one).await.with_context(|| format!("with {label}"))?);
    }
    Ok(table)
}

async fn rows(options: &MemoryOptions, label: &str, is_all_in_one: bool) -> Result<String> {
    let pods = options.deployments * PODS_OF_EACH;
    let nodes = u32::try_from(pods / 500 + 10).context("too many pods")?;
    let cluster = Cluster::start(ClusterOptions { nodes, ..ClusterOptions::default() }).await?;
    let mut operators = Vec::new();
    for name in operator::all()? {
        let spec = options.programs.install(&name, is_all_in_one, &cluster).await?;
        let mut operator = cluster.start_operator(&spec).await?;
        operator.wait_ready().await?;
        operators.push(operator);
    }
    let idle = at_rest(&operators).await?;
    create(&cluster, options.deployments).await?;
    let busy = at_rest(&operators).await?;
    Ok(row(label, 0, operators.len(), idle) + &row(label, pods, operators.len(), busy))
}

async fn at_rest(operators: &[Operator]) -> Result<Usage> {
    sleep(REST).await;
    operators.iter().map(Operator::usage).sum()
}

/// Makes so many Deployments, and waits for their pods.
async fn create(cluster: &Cluster, deployments: i32) -> Result<()> {
    let client = cluster.client().await?;
    for number in 0..deployments {
        let name = format!("web-{number}");
        let labels = json!({"app": name});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": PODS_OF_EACH, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        });
        apply(&client, "default", &deployment).await?;
    }
    let all: Api<Deployment> = Api::namespaced(client, "default");
    let end = Instant::now() + DEADLINE;
    loop {
        let found = all.list(&kube::api::ListParams::default()).await.context("list the Deployments")?;
        let available = found.items.iter().filter_map(|one| one.status.as_ref()?.available_replicas).sum::<i32>();
        if available == deployments * PODS_OF_EACH {
            return Ok(());
        }
        ensure!(Instant::now() < end, "only {available} pods are available");
        sleep(Duration::from_millis(500)).await;
    }
}

fn row(label: &str, pods: i32, processes: usize, usage: Usage) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1024 * 1024);
    let Usage { pss, rss, anonymous, .. } = usage;
    format!("| {label} | {pods} | {processes} | {} | {} | {} |\n", mib(pss), mib(rss), mib(anonymous))
}
