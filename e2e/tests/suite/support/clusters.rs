//! Which cluster a test gets: the one that tests share, or one of its own.
//! Left out: ending the shared one. Nothing outlives the process, which the cluster's guard sees to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread;

use anyhow::{Context, Result};
use e2e::cluster::{Cluster, ClusterOptions, ControllerManager};
use e2e::operator::{self, ALL_IN_ONE, Installed, Operator, OperatorSpec, is_one_process};
use futures::future::try_join_all;
use serde_json::json;

use super::scene::{self, Scene};

/// The operators that the suite is about: all there are.
pub(crate) fn operators() -> impl Iterator<Item = &'static str> {
    static OPERATORS: LazyLock<Vec<String>> = LazyLock::new(|| operator::all().expect("the operators' folders"));
    OPERATORS.iter().map(String::as_str)
}

/// The flags without which an operator has nothing to do within a test's time.
const FLAGS: &[(&str, &str)] =
    &[("legacy-serviceaccount-token-cleaner-operator", "--legacy-service-account-token-clean-up-period=1ms")];

/// Flags of leaders that keep their Leases while the apiserver does not answer for most of a minute: etcd is being
/// restored, or other tests start clusters of their own on a machine with few cores.
pub(crate) const PATIENT: [&str; 2] = ["--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s"];

/// The cluster that tests share, and where its operators listen.
struct Shared {
    cluster: Arc<Cluster>,
    ports: Vec<(String, u16)>,
}

/// The cluster shared by all tests of this process, with every operator at work and no kube-controller-manager. It lives
/// in a thread with a runtime of its own, as each test's runtime ends with the test.
pub(crate) fn shared() -> Result<Arc<Cluster>> {
    start_shared().map(|shared| Arc::clone(&shared.cluster))
}

/// Where the operators of the shared cluster listen; none are known where it is an external one.
pub(crate) fn shared_ports() -> Result<&'static [(String, u16)]> {
    start_shared().map(|shared| &*shared.ports)
}

fn start_shared() -> Result<&'static Shared> {
    static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
    let started = SHARED.get_or_init(|| {
        let thread = thread::Builder::new().name("shared-cluster".to_owned()).spawn(|| {
            scene::runtime()?.block_on(async {
                if is_external() {
                    return Ok(Shared { cluster: Arc::new(Cluster::external(None)?), ports: Vec::new() });
                }
                let options = ClusterOptions { has_node_lifecycle: true, ..ClusterOptions::default() };
                let cluster = Cluster::start(options).await?;
                if is_one_process() {
                    let ports = vec![start_one_process(&cluster).await?];
                    return Ok(Shared { cluster: Arc::new(cluster), ports });
                }
                let mut ports = Vec::new();
                for operator in start_with(&cluster, operators(), &PATIENT).await? {
                    ports.push((operator.name().to_owned(), operator.port()));
                    // Dropped it would be killed; the guard ends it with the process.
                    std::mem::forget(operator);
                }
                Ok(Shared { cluster: Arc::new(cluster), ports })
            })
        });
        let joined = thread.map_err(|error| error.to_string())?.join();
        joined.unwrap_or_else(|_| anyhow::bail!("starting the cluster panicked")).map_err(|error| format!("{error:#}"))
    });
    started.as_ref().map_err(anyhow::Error::msg).context("start the shared cluster")
}

/// Starts all controllers in one process, and says under which name and where it listens.
async fn start_one_process(cluster: &Cluster) -> Result<(String, u16)> {
    cluster.install_one_process().await?;
    let mut of = ControllerManager::one_process(program()).with_every_gate();
    of.flags.extend(FLAGS.iter().map(|(_, flag)| *flag).chain(PATIENT).map(str::to_owned));
    cluster.start_controller_manager(of).await?;
    cluster.wait_controller_manager().await?;
    Ok(("kube-controller-manager".to_owned(), cluster.controller_manager_port()?))
}

/// Whether the cluster of `KUBECONFIG` is to be tested.
pub(crate) fn is_external() -> bool {
    std::env::var_os("E2E_EXTERNAL").is_some_and(|value| !value.is_empty())
}

/// Runs a test on a cluster of its own; there is none where an external one is tested.
pub(crate) fn with_cluster(options: ClusterOptions, test: impl AsyncFnOnce(&Scene) -> Result<()>) -> Result<()> {
    if is_external() {
        eprintln!("passed over: it needs a cluster of its own");
        return Ok(());
    }
    scene::runtime()?.block_on(async {
        let cluster = Arc::new(Cluster::start(options).await?);
        scene::play(cluster, test).await
    })
}

/// Installs the permissions of these operators and starts them, as leaders.
pub(crate) async fn start_operators<'a>(
    cluster: &Cluster,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Operator>> {
    start_with(cluster, names, &[]).await
}

async fn start_with<'a>(
    cluster: &Cluster,
    names: impl IntoIterator<Item = &'a str>,
    flags: &[&str],
) -> Result<Vec<Operator>> {
    try_join_all(names.into_iter().map(async |name| {
        let mut spec = spec(cluster, name).await?;
        spec.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let mut operator = cluster.start_operator(&spec).await?;
        operator.wait_ready().await?;
        Ok(operator)
    }))
    .await
}

/// An operator, its permissions installed, still to be started.
pub(crate) async fn spec(cluster: &Cluster, name: &str) -> Result<OperatorSpec> {
    let account = cluster.install(&manifests(name)).await?;
    let flags = FLAGS.iter().filter(|(operator, _)| *operator == name).map(|(_, flag)| (*flag).to_owned());
    let mut spec = OperatorSpec::new(name, program(), &account);
    spec.flags.extend(flags);
    Ok(spec)
}

/// The token of a new account that may read the operators' metrics, by the role that the manifests have for that.
pub(crate) async fn metrics_token(scene: &Scene) -> Result<String> {
    let role = manifests("metrics-reader");
    scene.cluster.kubectl([OsStr::new("apply"), OsStr::new("-k"), role.as_os_str()]).await?;
    token(scene, "reader", "operators-metrics-reader").await
}

/// The token of a new account that may read why an operator is not well, too: the apiserver has this role from its start.
pub(crate) async fn monitoring_token(scene: &Scene) -> Result<String> {
    token(scene, "monitor", "system:monitoring").await
}

/// The token of a new account that may read all that is for people who look into an operator.
pub(crate) async fn debug_token(scene: &Scene) -> Result<String> {
    let rule = json!({"nonResourceURLs": ["/debug/*", "/metrics"], "verbs": ["get"]});
    scene
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "e2e-debug"}, "rules": [rule],
        }))
        .await?;
    token(scene, "debugger", "e2e-debug").await
}

async fn token(scene: &Scene, account: &str, role: &str) -> Result<String> {
    scene.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}})).await?;
    scene
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("e2e-{account}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": scene.namespace}],
        }))
        .await?;
    scene.cluster.token(&Installed { namespace: scene.namespace.clone(), service_account: account.to_owned() }).await
}

/// A folder of manifests, such as an operator's.
pub(crate) fn manifests(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests").join(folder)
}

/// The program that has all operators in it.
pub(crate) fn program() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_e2e")).with_file_name(ALL_IN_ONE)
}
