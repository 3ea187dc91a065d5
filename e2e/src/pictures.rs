//! `pictures`: all operators at work for some minutes, and pictures of the dashboards that show it.
//! Left out: whether the work has its results. The suite looks at that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::apply::apply;
use e2e::cluster::{Cluster, ClusterOptions};
use e2e::dashboard::{Dashboard, Time, picture};
use e2e::metrics::{Metrics, Pods};
use e2e::operator;
use e2e::progress::Progress;
use e2e::prometheus::Prometheus;
use futures::future::try_join_all;
use serde_json::{Value, json};
use shared::transport::clock::Clock;
use tokio::time::sleep;

use crate::run::{MANIFESTS, program, start, stay, wait_default_account};

/// The one for all operators, and one of a family.
const PICTURED: [&str; 2] = ["operators", "rollouts"];
/// Without it there is no metric of unavailable pods.
const FLAGS: [(&str, &str); 1] = [("statefulset-operator", "--feature-gates=MaxUnavailableStatefulSet=true")];
/// How often the objects are changed.
const ROUNDS_A_MINUTE: u32 = 4;
/// Over two rounds, so that a rate is no row of spikes.
const RATES: &str = "30s";
/// Between two points of a line, in seconds.
const STEP: f64 = 10.0;

#[derive(clap::Args)]
pub(crate) struct PicturesFlags {
    /// Where the pictures go.
    folder: PathBuf,
    /// How long the operators work.
    #[arg(long, default_value_t = 6)]
    minutes: u32,
}

pub(crate) async fn record(flags: &PicturesFlags) -> Result<()> {
    let mut progress = Progress::default();
    let options = ClusterOptions { nodes: 8, has_node_lifecycle: true, ..ClusterOptions::default() };
    let cluster = Cluster::start_with(options, &mut progress).await?;
    progress.show("starting the operators");
    let mut operators = start(&cluster, &operator::all()?, &program()?, &FLAGS).await?;
    let viewer = cluster.install(&Path::new(MANIFESTS).join("viewer")).await?;
    let prometheus = cluster.start_prometheus(&operators, &cluster.token(&viewer).await?, &json!([]))?;
    let begun = now();
    progress.show(&format!("all operators work for {} minutes", flags.minutes));
    // A picture of operators that have ended, such as for a lost Lease on a busy machine, would be of no use.
    tokio::select! {
        worked = work(&cluster, flags.minutes) => worked?,
        ended = stay(&cluster, &mut operators) => ended?,
    }
    let time = Time { start: begun, end: now(), step: STEP };
    std::fs::create_dir_all(&flags.folder).with_context(|| format!("create {}", flags.folder.display()))?;
    for name in PICTURED {
        let path = flags.folder.join(name).with_extension("svg");
        let picture = pictured(name, &prometheus, time).await?;
        std::fs::write(&path, picture).with_context(|| format!("write {}", path.display()))?;
        progress.finish(&path.display().to_string());
    }
    Ok(())
}

/// In seconds since the epoch.
fn now() -> f64 {
    Clock::system().now().as_duration().as_secs_f64()
}

async fn pictured(name: &str, prometheus: &Prometheus, time: Time) -> Result<String> {
    let path = Path::new(MANIFESTS).join("components/dashboards").join(name).with_extension("json");
    let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    let dashboard: Dashboard = serde_json::from_slice(&text).with_context(|| format!("read {}", path.display()))?;
    let lines = dashboard.panels.iter().map(async |panel| {
        let lines = panel.targets.iter().map(async |target| {
            let series = prometheus.query_range(&target.query(RATES), time).await?;
            anyhow::Ok(target.lines(&series))
        });
        anyhow::Ok(try_join_all(lines).await?.concat())
    });
    Ok(picture(&dashboard, &try_join_all(lines).await?, &time))
}

/// Rolls out workloads of all kinds again and again, in turn.
async fn work(cluster: &Cluster, minutes: u32) -> Result<()> {
    let client = cluster.client().await?;
    wait_default_account(&client).await?;
    let metrics = Metrics::start(cluster, "default", Pods::Live).await?;
    for round in 0..minutes * ROUNDS_A_MINUTE {
        // Each pod is busy for a minute, and then has little to do.
        metrics.set_cpu("shop", if round % 8 < 4 { 120 } else { 30 });
        for object in objects(round) {
            apply(&client, "default", &object).await?;
        }
        sleep(Duration::from_secs(60) / ROUNDS_A_MINUTE).await;
    }
    Ok(())
}

/// The objects in this round. Each workload gets another image in every third or fourth one.
fn objects(round: u32) -> Vec<Value> {
    let image = |rounds: u32, later: u32| (round + later) / rounds;
    let replicas = |count: u32| json!({"replicas": count});
    let one = |kind: &str, name: &str, mut spec: Value, version: u32| {
        spec["selector"] = json!({"matchLabels": {"app": name}});
        spec["template"] = template(name, version);
        object("apps/v1", kind, name, &spec)
    };
    let mut limited = one("Deployment", "limited", replicas(8), image(4, 0));
    let mut quota = object("v1", "ResourceQuota", "pods", &json!({"hard": {"pods": "6"}}));
    for object in [&mut limited, &mut quota] {
        object["metadata"]["namespace"] = json!("limited");
    }
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"});
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
    let autoscaler = json!({
        "scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 20,
        "metrics": [{"type": "Resource", "resource": cpu}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    });
    let web = json!({"app": "web"});
    let budget = json!({"minAvailable": "50%", "selector": {"matchLabels": web}});
    let job = json!({"completions": 10, "parallelism": 5, "ttlSecondsAfterFinished": 30,
        "template": {"spec": pod("report", 0, "Never")}});
    vec![
        object("v1", "Namespace", "limited", &json!({})),
        quota,
        limited,
        one("Deployment", "web", replicas(24), image(3, 0)),
        one("Deployment", "api", replicas(16), image(3, 1)),
        one("Deployment", "worker", replicas(12), image(3, 2)),
        one("Deployment", "shop", json!({}), 0),
        one("StatefulSet", "database", json!({"replicas": 5, "serviceName": "database"}), image(4, 0)),
        one("DaemonSet", "agent", json!({}), image(4, 2)),
        object("autoscaling/v2", "HorizontalPodAutoscaler", "shop", &autoscaler),
        object("policy/v1", "PodDisruptionBudget", "web", &budget),
        object("v1", "Service", "web", &json!({"selector": web, "ports": [{"port": 80}]})),
        object("batch/v1", "Job", &format!("report-{round}"), &job),
    ]
}

fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Pods that are ready a while after they have started, as those of most programs.
fn template(name: &str, version: u32) -> Value {
    let metadata = json!({"labels": {"app": name}, "annotations": {"pods.e2e/becomes": "ready-later"}});
    json!({"metadata": metadata, "spec": pod(name, version, "Always")})
}

fn pod(name: &str, version: u32, restart_policy: &str) -> Value {
    let resources = json!({"requests": {"cpu": "100m"}});
    let container = json!({"name": name, "image": format!("{name}:{version}"), "resources": resources});
    json!({"restartPolicy": restart_policy, "containers": [container]})
}
