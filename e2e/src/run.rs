//! `run`: the cluster, all controllers in one process or chosen ones in a process each, and a Deployment rolling out.
//! Left out: knowing what the operators do. Their folders say which there are, and the names which controllers they replace.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use e2e::apply::apply;
use e2e::cluster::{Cluster, ClusterOptions, ControllerManager, Part};
use e2e::operator::{self, ALL_IN_ONE, Operator, OperatorSpec, upstream_controller};
use e2e::progress::Progress;
use e2e::terminal::print;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tools::Tool;

pub(crate) const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests");
const REPLICAS: i32 = 20;
const ROLLOUT_DEADLINE: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
pub(crate) struct RunFlags {
    /// Operators that run as processes of their own, while kube-controller-manager runs the other controllers.
    #[arg(long, value_delimiter = ',', conflicts_with = "each")]
    operators: Vec<String>,
    /// Every operator as a process of its own, in place of one process with all controllers.
    #[arg(long)]
    each: bool,
    /// How many nodes.
    #[arg(long, default_value_t = ClusterOptions::default().nodes)]
    nodes: u32,
}

pub(crate) async fn run(flags: &RunFlags) -> Result<()> {
    let mut progress = Progress::default();
    let started = Instant::now();
    let program = program()?;
    let mut operators = Vec::new();
    let cluster;
    let what;
    if flags.each || !flags.operators.is_empty() {
        let names = if flags.each { operator::all()? } else { flags.operators.clone() };
        cluster = Cluster::start_with(beside(&names, flags), &mut progress).await?;
        progress.show_live("starting the operators");
        operators = start(&cluster, &names, &program, &[]).await?;
        what = names.join(", ");
    } else {
        cluster = Cluster::start_with(one_process(program, flags.nodes), &mut progress).await?;
        cluster.wait_controller_manager().await?;
        let resident = cluster.usage(Part::ControllerManager)?.rss >> 20;
        what = format!("all controllers in one process of {resident} MiB, in place of kube-controller-manager");
    }
    let ready = started.elapsed().as_secs_f32();
    progress.finish(&format!("ready after {ready:.1} s: {} nodes, {what}", flags.nodes));
    roll_out(&cluster, &mut progress).await?;
    let servers = write_servers(&cluster, &operators).await?;
    print(&help(&cluster, &servers)?)?;
    stay(&cluster, &mut operators).await
}

/// A cluster without the controllers of the operators in `names`.
fn beside(names: &[String], flags: &RunFlags) -> ClusterOptions {
    let rest = || ControllerManager::without(names.iter().map(|name| upstream_controller(name)));
    let controller_manager = (!flags.each).then(rest);
    let has_node_lifecycle = names.iter().any(|name| name == "node-lifecycle-operator");
    ClusterOptions { nodes: flags.nodes, controller_manager, has_node_lifecycle, ..ClusterOptions::default() }
}

/// A cluster in which `program` takes the place of kube-controller-manager.
fn one_process(program: PathBuf, nodes: u32) -> ClusterOptions {
    let controller_manager = Some(ControllerManager::one_process(program));
    ClusterOptions { nodes, controller_manager, ..ClusterOptions::default() }
}

/// Waits for ever; a part or an operator that ends by itself is an error.
pub(crate) async fn stay(cluster: &Cluster, operators: &mut [Operator]) -> Result<()> {
    loop {
        cluster.check_parts()?;
        for operator in &mut *operators {
            operator.process().check_running()?;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// The program of all operators, next to this one.
pub(crate) fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("find this program")?;
    let program = own.with_file_name(ALL_IN_ONE);
    if !program.is_file() {
        bail!("not built: {}; `make run` builds it first", program.display());
    }
    Ok(program)
}

/// Starts these operators, some with a flag.
pub(crate) async fn start(
    cluster: &Cluster,
    names: &[String],
    program: &Path,
    flags: &[(&str, &str)],
) -> Result<Vec<Operator>> {
    try_join_all(names.iter().map(async |name| {
        let account = cluster.install(&Path::new(MANIFESTS).join(name)).await?;
        let mut spec = OperatorSpec::new(name, program, &account);
        spec.flags.extend(flags.iter().filter(|(of, _)| of == name).map(|(_, flag)| (*flag).to_owned()));
        let mut operator = cluster.start_operator(&spec).await?;
        operator.wait_ready().await?;
        Ok(operator)
    }))
    .await
}

/// For `kubectl operators`, which finds operators in pods by itself: where these are, and the account that speaks to them.
/// Without operators it is one process.
async fn write_servers(cluster: &Cluster, operators: &[Operator]) -> Result<PathBuf> {
    cluster.install(&Path::new(MANIFESTS).join("viewer")).await?;
    let line = |name: &str, port: u16| format!("{name}=https://127.0.0.1:{port}\n");
    let path = cluster.run_dir()?.join("operators.servers");
    let lines: String = if operators.is_empty() {
        line(Part::ControllerManager.name(), cluster.controller_manager_port()?)
    } else {
        operators.iter().map(|operator| line(operator.name(), operator.port())).collect()
    };
    std::fs::write(&path, lines).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// Applies a Deployment and shows it rolling out.
async fn roll_out(cluster: &Cluster, progress: &mut Progress) -> Result<()> {
    let client = cluster.client().await?;
    let started = Instant::now();
    wait_default_account(&client).await?;
    apply(&client, "default", &nginx()).await?;
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    loop {
        let status =
            deployments.get_status("nginx").await.context("look at the Deployment")?.status.unwrap_or_default();
        progress.show_live(&describe(&status));
        if status.available_replicas == Some(REPLICAS) {
            break;
        }
        if started.elapsed() > ROLLOUT_DEADLINE {
            progress.finish(&describe(&status));
            bail!("the Deployment is not rolled out after {} s", ROLLOUT_DEADLINE.as_secs());
        }
        sleep(Duration::from_millis(50)).await;
    }
    let took = started.elapsed().as_secs_f32();
    progress.finish(&format!("deployment/nginx: {REPLICAS} of {REPLICAS} pods available after {took:.1} s"));
    Ok(())
}

/// A pod is admitted only once its namespace has a service account.
pub(crate) async fn wait_default_account(client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let end = Instant::now() + ROLLOUT_DEADLINE;
    while accounts.get_opt("default").await.context("look for the default service account")?.is_none() {
        if Instant::now() > end {
            bail!("nobody creates service accounts");
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn nginx() -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "nginx" },
        "spec": {
            "replicas": REPLICAS,
            "selector": { "matchLabels": { "app": "nginx" } },
            "template": {
                "metadata": { "labels": { "app": "nginx" } },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:1.28" }] },
            },
        },
    })
}

fn describe(status: &DeploymentStatus) -> String {
    let available = status.available_replicas.unwrap_or(0);
    let bar: String = (0..REPLICAS).map(|pod| if pod < available { '#' } else { '.' }).collect();
    format!("deployment/nginx [{bar}] {} created, {available} available", status.replicas.unwrap_or(0))
}

/// For those who have no kubectl of their own: where the one is that was built.
fn path_to_kubectl() -> String {
    let built = tools::find(Tool::Kubectl).filter(|_| tools::find_program(Tool::Kubectl.name()).is_none());
    let dir = built.as_deref().and_then(Path::parent);
    dir.map_or(String::new(), |dir| format!(" PATH=$PATH:{}", dir.display()))
}

fn help(cluster: &Cluster, servers: &Path) -> Result<String> {
    Ok(format!(
        "
export KUBECONFIG={}{}

kubectl get deployments,replicasets,pods
kubectl set image deployment/nginx nginx=nginx:1.29 && kubectl rollout status deployment/nginx
kubectl rollout undo deployment/nginx
kubectl scale deployment/nginx --replicas=200
kubectl create cronjob hello --image=busybox:1.37 --schedule='@every 10s' -- true && kubectl get jobs --watch
kubectl get leases --namespace kube-system
kubectl operators --servers={} why deployment/nginx    # `make plugin`, and dist/bin on the PATH

Logs: {}
Ctrl-C ends it all.
",
        cluster.kubeconfig().display(),
        path_to_kubectl(),
        servers.display(),
        cluster.run_dir()?.join("logs").display()
    ))
}
