//! The memory of each operator by itself, without objects and with many: what its limit follows from.
//!
//! The objects are written as they are, without controllers and kubelets: pods of ReplicaSets with a Service and a budget
//! each, and one object of every kind for whose sake some operator follows all of these pods.
//! Left out: work. An operator that starts among many objects has all of its caches, and its first round behind it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::{api, apply};
use e2e::cluster::{Cluster, ClusterOptions, Part};
use e2e::operator;
use e2e::progress::Progress;
use e2e::usage::Usage;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::options::{DEADLINE, MemoryOptions, PODS_OF_EACH};

const NAMESPACE: &str = "default";
/// Pods of each ReplicaSet.
const PODS_OF_A_SET: u32 = 100;
/// How many writes are under way at a time.
const AT_A_TIME: usize = 32;
/// An operator is at rest once its memory has been the same for as long.
const STILL: Duration = Duration::from_secs(4);

/// Measures, and gives a table of what was measured.
pub(super) async fn run(options: &MemoryOptions) -> Result<String> {
    let cluster = Cluster::start(ClusterOptions { nodes: 1, ..ClusterOptions::default() }).await?;
    // It would change the pods that are written here.
    cluster.stop(Part::Kwok).await?;
    let mut names = operator::all()?;
    names.retain(|name| options.only.is_empty() || options.only.contains(name));
    ensure!(!names.is_empty(), "there are no operators {:?}", options.only);
    let mut progress = Progress::default();
    let mut idle = Vec::new();
    for name in &names {
        progress.show_live(name);
        idle.push(weigh(options, &cluster, name).await?);
    }
    let pods = options.deployments * PODS_OF_EACH;
    progress.show_live(&format!("writing {pods} pods and {} workloads without pods", options.workloads));
    write(&cluster, pods).await?;
    write_workloads(&cluster, options.workloads).await?;
    let mut table = "| operator | idle: resident KiB | anonymous | with all: resident | anonymous | most resident | bytes of each |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for (name, idle) in names.iter().zip(idle) {
        progress.show_live(name);
        let busy = weigh(options, &cluster, name).await?;
        table.push_str(&row(name, idle, busy, u64::from(pods.max(options.workloads).max(1))));
    }
    progress.finish("measured");
    Ok(table)
}

async fn weigh(options: &MemoryOptions, cluster: &Cluster, name: &str) -> Result<Usage> {
    let mut spec = options.programs.install(name, options.one_program, cluster).await?;
    spec.leader_elect = false;
    let mut operator = cluster.start_operator(&spec).await?;
    operator.wait_ready().await?;
    let end = Instant::now() + DEADLINE;
    let (mut last, mut since) = (operator.usage()?, Instant::now());
    while since.elapsed() < STILL {
        ensure!(Instant::now() < end, "{name} does not come to rest: {last:?}");
        sleep(Duration::from_millis(200)).await;
        let now = operator.usage()?;
        if now.anonymous != last.anonymous {
            since = Instant::now();
        }
        last = now;
    }
    operator.terminate().await?;
    Ok(last)
}

async fn write(cluster: &Cluster, pods: u32) -> Result<()> {
    let client = cluster.client().await?;
    for number in 0..pods / PODS_OF_A_SET {
        let name = format!("web-{number}");
        let set = apply(&client, NAMESPACE, &replica_set(&name)).await?;
        let uid = set.metadata.uid.context("a ReplicaSet has a uid")?;
        let pods = stream::iter(0..PODS_OF_A_SET).map(|index| write_pod(&client, &name, &uid, index));
        pods.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        for object in with_each(&name) {
            apply(&client, NAMESPACE, &object).await?;
        }
    }
    for object in for_all() {
        apply(&client, NAMESPACE, &object).await?;
    }
    Ok(())
}

async fn write_pod(client: &Client, set: &str, uid: &str, index: u32) -> Result<()> {
    let name = format!("{set}-{index}");
    let pods = api(client, "v1", "Pod", NAMESPACE).await?;
    let object = pod(set, uid, &name);
    let object = serde_json::from_value(object).context("a pod is an object")?;
    pods.create(&kube::api::PostParams::default(), &object).await.with_context(|| format!("create {name}"))?;
    let address = format!("10.{}.{}.{}", index % 250, name.len(), index / 250 + 1);
    let status = Patch::Merge(json!({"status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [{
            "name": "web", "image": "web:1", "imageID": "web:1", "ready": true, "restartCount": 0, "started": true,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }],
    }}));
    pods.patch_status(&name, &PatchParams::default(), &status).await.with_context(|| format!("start {name}"))?;
    Ok(())
}

/// As an ordinary one is, with what operators don't keep as well.
fn pod(set: &str, uid: &str, name: &str) -> Value {
    let requests = json!({"cpu": "10m", "memory": "16Mi"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            // By the second label a Job knows its pods.
            "labels": {"app": set, "batch.kubernetes.io/controller-uid": uid},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": uid, "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": "node-0",
            "containers": [{
                "name": "web", "image": "web:1", "env": [{"name": "A", "value": "b"}],
                "ports": [{"name": "http", "containerPort": 80}], "resources": {"requests": requests},
            }],
        },
    })
}

fn template(name: &str) -> Value {
    let containers = json!([{"name": "web", "image": "web:1"}]);
    json!({"metadata": {"labels": {"app": name}}, "spec": {"nodeSelector": {"no": "node"}, "containers": containers}})
}

fn replica_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {"replicas": PODS_OF_A_SET, "selector": {"matchLabels": {"app": name}}, "template": template(name)},
    })
}

/// As many of each kind, with a template as people write them: two kilobytes, no two alike.
async fn write_workloads(cluster: &Cluster, count: u32) -> Result<()> {
    let client = cluster.client().await?;
    let objects = (0..count).flat_map(|number| {
        let name = format!("empty-{number}");
        let environment: Vec<Value> = (0..30)
            .map(|variable| json!({"name": format!("VARIABLE_{variable}"), "value": format!("{name} has the value {variable}")}))
            .collect();
        let mut template = template(&name);
        template["spec"]["containers"][0]["env"] = json!(environment);
        ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"].map(|kind| workload(kind, &name, &template))
    });
    let written = stream::iter(objects).map(|object| {
        let client = client.clone();
        async move { apply(&client, NAMESPACE, &object).await.map(drop) }
    });
    written.buffer_unordered(AT_A_TIME).try_collect().await
}

fn workload(kind: &str, name: &str, template: &Value) -> Value {
    let mut spec = json!({"template": template});
    if kind == "Job" {
        spec["suspend"] = json!(true);
        spec["template"]["spec"]["restartPolicy"] = json!("Never");
    } else {
        spec["selector"] = json!({"matchLabels": {"app": name}});
    }
    if kind == "StatefulSet" {
        spec["serviceName"] = json!(name);
    }
    if kind != "DaemonSet" && kind != "Job" {
        spec["replicas"] = json!(0);
    }
    let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

pub(super) fn with_each(name: &str) -> [Value; 2] {
    let metadata = json!({"name": name});
    let ports = json!([{"port": 80, "targetPort": "http"}]);
    let selector = json!({"matchLabels": {"app": name}});
    [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": {"app": name}, "ports": ports}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
            "spec": {"maxUnavailable": 1, "selector": selector}}),
    ]
}

/// Each makes some operator follow the pods, and none has pods of its own.
fn for_all() -> [Value; 4] {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "1000000", "requests.cpu": "100000"}}});
    let template = template("none");
    let [set, daemons, job] = ["StatefulSet", "DaemonSet", "Job"].map(|kind| workload(kind, "none", &template));
    [set, daemons, job, quota]
}

fn row(name: &str, idle: Usage, busy: Usage, pods: u64) -> String {
    let kib = |bytes: u64| bytes / 1024;
    let of_each = busy.anonymous.saturating_sub(idle.anonymous) / pods;
    format!(
        "| {name} | {} | {} | {} | {} | {} | {of_each} |\n",
        kib(idle.rss),
        kib(idle.anonymous),
        kib(busy.rss),
        kib(busy.anonymous),
        kib(busy.peak_rss),
    )
}
