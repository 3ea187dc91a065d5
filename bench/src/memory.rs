//! What each form needs: kube-controller-manager, one process, a process for each family, and a process for each
//! controller, all with the same controllers; without objects, and among many pods.
//!
//! The forms come one after the other on one cluster. Each starts among objects that another one has brought to rest, so
//! what is measured is what it keeps, and how soon it is at work again.
//! With `--each` every operator is weighed by itself instead.
//! Left out: any work but following, which the other sets measure.

mod each;
mod form;
mod options;

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::apply::apply;
use e2e::cluster::{Cluster, ClusterOptions};
use e2e::progress::Progress;
use e2e::usage::Usage;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::measure::{in_parallel, wait_until};
use each::with_each;
use form::{Form, Forms};
pub(crate) use options::MemoryOptions;
use options::{DEADLINE, PODS_OF_EACH};

const NAMESPACE: &str = "default";
/// How long a form has been at work when it is measured: first it reads everything that there is.
const MEASURED_AFTER: Duration = Duration::from_secs(60);
/// The Deployment that is changed while nobody works.
const PROBE: &str = "probe";

/// Measures, and gives a table of what was measured.
pub(crate) async fn run(options: &MemoryOptions) -> Result<String> {
    if options.each {
        return each::run(options).await;
    }
    let pods = options.deployments.saturating_mul(PODS_OF_EACH);
    let nodes = options.deployments + 10;
    let cluster =
        Cluster::start(ClusterOptions { nodes, has_node_lifecycle: true, ..ClusterOptions::default() }).await?;
    let client = cluster.client().await?;
    let forms = Forms::install(options, &cluster).await?;
    let mut progress = Progress::default();
    let mut table = "| form | pods | processes | a new pod after s | CPU s of the first minute | PSS MiB | RSS MiB | anonymous MiB | most RSS MiB |\n\
                     |---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let form = forms.start(Form::OneProcess, &cluster).await?;
    apply(&client, NAMESPACE, &deployment(PROBE, 0, "node-0")).await?;
    wait_probe(&client, 0).await?;
    form.stop(&cluster).await?;
    let mut probes = 0;
    for count in [0, options.deployments] {
        if count > 0 {
            let started = Instant::now();
            let form = forms.start(Form::OneProcess, &cluster).await?;
            create(&client, count, nodes).await?;
            form.stop(&cluster).await?;
            progress.finish(&format!("made {pods} pods in {} s", started.elapsed().as_secs()));
        }
        for kind in Form::ALL {
            probes += 1;
            let pods = count.saturating_mul(PODS_OF_EACH);
            let row = measure(kind, &forms, &cluster, &client, probes).await.with_context(|| kind.name().to_owned())?;
            let row = format!("| {} | {pods} | {row}", kind.name());
            progress.finish(row.trim_end());
            table.push_str(&row);
        }
    }
    Ok(table)
}

/// Starts a form while the probe wants one pod more than it has, and stops it again.
async fn measure(kind: Form, forms: &Forms, cluster: &Cluster, client: &Client, probes: u32) -> Result<String> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let wanted = Patch::Merge(json!({"spec": {"replicas": probes}}));
    deployments.patch(PROBE, &PatchParams::default(), &wanted).await?;
    let started = Instant::now();
    let form = forms.start(kind, cluster).await?;
    wait_probe(client, probes).await?;
    let took = started.elapsed();
    sleep(MEASURED_AFTER.saturating_sub(took)).await;
    let row = row(form.processes(), took, form.usage(cluster)?);
    form.stop(cluster).await?;
    Ok(row)
}

/// Waits until the probe has so many pods, and its ReplicaSet says so.
async fn wait_probe(client: &Client, pods: u32) -> Result<()> {
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), NAMESPACE);
    let of_probe = ListParams::default().labels(&format!("app={PROBE}"));
    wait_until("scaled", DEADLINE, async || {
        let found = sets.list(&of_probe).await?.items;
        let status = found.iter().filter_map(|set| set.status.as_ref());
        Ok(status.map(|status| i64::from(status.replicas)).eq([i64::from(pods)]))
    })
    .await
}

/// Makes so many Deployments, each with a Service and a budget, and waits for their pods.
async fn create(client: &Client, count: u32, nodes: u32) -> Result<()> {
    in_parallel(count, async |at| {
        let name = format!("web-{at}");
        apply(client, NAMESPACE, &deployment(&name, PODS_OF_EACH, &format!("node-{}", at % nodes))).await?;
        for object in with_each(&name) {
            apply(client, NAMESPACE, &object).await?;
        }
        Ok(())
    })
    .await?;
    let all: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let wanted = u64::from(count) * u64::from(PODS_OF_EACH);
    wait_until("available", DEADLINE, async || {
        let found = all.list(&ListParams::default()).await.context("list the Deployments")?;
        let available =
            found.items.iter().filter_map(|one| u64::try_from(one.status.as_ref()?.available_replicas?).ok());
        Ok(available.sum::<u64>() >= wanted)
    })
    .await?;
    // What follows the last pod, such as its EndpointSlice.
    sleep(MEASURED_AFTER).await;
    Ok(())
}

/// Its pods are on that node from the start: how they get there is not what is measured.
fn deployment(name: &str, replicas: u32, node: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeName": node,
                    "containers": [{
                        "name": "web", "image": "web:1", "env": [{"name": "A", "value": "b"}],
                        "ports": [{"name": "http", "containerPort": 80}],
                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    }],
                },
            },
        },
    })
}

fn row(processes: usize, took: Duration, usage: Usage) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1024 * 1024);
    let Usage { pss, rss, anonymous, peak_rss, cpu } = usage;
    format!(
        "{processes} | {:.1} | {:.1} | {} | {} | {} | {} |\n",
        took.as_secs_f64(),
        cpu.as_secs_f64(),
        mib(pss),
        mib(rss),
        mib(anonymous),
        mib(peak_rss)
    )
}
