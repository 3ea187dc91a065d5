//! A cluster to test against: a local one made of real parts (etcd, kube-apiserver, kube-scheduler and, for nodes and pods,
//! kwok) as processes of this machine, or one that is already there. kube-controller-manager is one of the parts only where
//! somebody asks for it: to hand over to or from it, or to be measured beside.
//! Left out: containers, kubelets, networking between pods. What needs them belongs to a kind cluster.

mod backup;
mod nodes;
mod parts;
mod run_dir;

use std::collections::BTreeMap;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use tokio::time::{Instant, sleep};

use crate::guard::Guard;
use crate::operator::wait_ok;
use crate::pki::Pki;
use crate::process::{Process, log_tail};
use crate::progress::Progress;
use crate::tools::{Tool, Tools};
use crate::usage::Usage;
use crate::{kubeconfig, ports};
use parts::Parts;
use run_dir::RunDir;

pub use nodes::kubelet;
pub use parts::Part;

/// How long a part may take from its start until it serves.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long a part may take to end on SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(20);

const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
";

/// Whether a cluster is ours to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    /// Started by us: parts can be stopped, pods behave as their annotations say (`e2e/kwok/pod.yaml`).
    Local,
    /// Already there, with the operators installed.
    External,
}

/// Off by default in kube-controller-manager, and turned on by kubeadm.
const TURNED_ON: [&str; 2] = ["bootstrap-signer-controller", "token-cleaner-controller"];

/// Takes the taint away that every new node has.
const NODE_LIFECYCLE: &str = "node-lifecycle-controller";

/// The gate of ClusterTrustBundles, of kube-apiserver and of kube-controller-manager.
const TRUST_BUNDLES: &str = "--feature-gates=ClusterTrustBundle=true";
/// The resource is off besides: see [`TRUST_BUNDLES`].
const SERVED_TRUST_BUNDLES: &str = "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true";

/// kube-controller-manager, and which of its controllers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerManager {
    /// The value of `--controllers`.
    pub controllers: String,
    /// Further flags; they win over ours.
    pub flags: Vec<String>,
}

impl ControllerManager {
    /// Every controller that a cluster of kubeadm has.
    pub fn all() -> Self {
        Self::without::<&str>([])
    }

    /// All but the named ones (`deployment-controller`).
    pub fn without<N: AsRef<str>>(controllers: impl IntoIterator<Item = N>) -> Self {
        let off: Vec<String> = controllers.into_iter().map(|name| name.as_ref().to_owned()).collect();
        // Of several words about one controller the first counts.
        let on = TURNED_ON.iter().filter(|name| !off.iter().any(|off| off == *name)).map(|name| (*name).to_owned());
        let words = iter::once("*".to_owned()).chain(on).chain(off.iter().map(|name| format!("-{name}")));
        Self { controllers: words.collect::<Vec<String>>().join(","), flags: Vec::new() }
    }

    /// Of several words about one controller the first counts.
    fn runs(&self, controller: &str) -> bool {
        let mut words = self.controllers.split(',');
        let own = words.clone().find(|word| word.strip_prefix('-').unwrap_or(word) == controller);
        // The word for all comes last, wherever it stands.
        own.or_else(|| words.find(|word| *word == "*")).is_some_and(|word| !word.starts_with('-'))
    }
}

/// The size and the programs of a local cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// How many nodes kwok plays.
    pub nodes: u32,
    /// In how many zones these are, in turn.
    pub zones: u32,
    /// For how many seconds a node's Lease holds, which kwok renews four times as often.
    pub node_lease: u32,
    /// Whether node-lifecycle-operator will be at work: it takes the taint away that every new node has.
    pub has_node_lifecycle: bool,
    /// None, unless said otherwise: the operators do its work.
    pub controller_manager: Option<ControllerManager>,
    /// Further flags of kube-apiserver, such as `--feature-gates=…`; they win over ours.
    pub apiserver_flags: Vec<String>,
    /// Whether every request is written into [`Cluster::audit_log`].
    pub audit: bool,
    /// The policy of the audit log; by default one event of each request with its metadata, once it has been answered.
    pub audit_policy: &'static str,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            nodes: 5,
            zones: 3,
            node_lease: 40,
            has_node_lifecycle: false,
            controller_manager: None,
            apiserver_flags: Vec::new(),
            audit: false,
            audit_policy: AUDIT_POLICY,
        }
    }
}

impl ClusterOptions {
    /// Whether somebody takes the taint away that every new node has, at the latest when the operators are at work.
    fn is_untainted(&self) -> bool {
        self.has_node_lifecycle || self.controller_manager.as_ref().is_some_and(|one| one.runs(NODE_LIFECYCLE))
    }

    /// With every controller of kube-controller-manager that a cluster of kubeadm has.
    pub fn with_controller_manager() -> Self {
        Self { controller_manager: Some(ControllerManager::all()), ..Self::default() }
    }

    /// The same with ClusterTrustBundles, which are off by default: kube-apiserver serves them, and
    /// kube-controller-manager, if there is one from the start, publishes its own.
    #[must_use]
    pub fn with_trust_bundles(mut self) -> Self {
        self.apiserver_flags.extend([TRUST_BUNDLES, SERVED_TRUST_BUNDLES].map(str::to_owned));
        if let Some(ControllerManager { flags, .. }) = &mut self.controller_manager {
            flags.push(TRUST_BUNDLES.to_owned());
        }
        self
    }
}

/// A running cluster. A local one ends, and leaves nothing running, when this is dropped or the process ends.
pub struct Cluster {
    kubeconfig: PathBuf,
    local: Option<Local>,
}

/// The programs and files of a local cluster. Fields are dropped in this order: processes before their files.
struct Local {
    processes: Mutex<BTreeMap<Part, Process>>,
    /// Whether somebody takes the taint of new nodes away.
    is_untainted: bool,
    zones: u32,
    parts: Parts,
    pki: Pki,
    guard: Arc<Guard>,
    run_dir: RunDir,
}

impl Cluster {
    /// Starts a local cluster and waits until its nodes are ready.
    pub async fn start(options: ClusterOptions) -> Result<Self> {
        Self::start_with(options, &mut Progress::default()).await
    }

    /// As [`Self::start`], showing what goes on.
    pub async fn start_with(options: ClusterOptions, progress: &mut Progress) -> Result<Self> {
        let tools = Tools::find(&Tool::OF_A_CLUSTER, progress).await?;
        progress.show_live("starting the apiserver");
        let run_dir = RunDir::create()?;
        let guard = Arc::new(Guard::start(&run_dir.data())?);
        let pki = Pki::create(&run_dir.path().join("pki"))?;
        let parts = Parts::new(tools, &run_dir, &pki, &options)?;
        let (is_untainted, zones) = (options.is_untainted(), options.zones);
        let cluster = Self {
            kubeconfig: parts.kubeconfig("admin"),
            local: Some(Local { processes: Mutex::default(), is_untainted, zones, parts, pki, guard, run_dir }),
        };
        cluster.run(Part::Etcd)?;
        cluster.run(Part::Apiserver)?;
        let client = cluster.client().await?;
        cluster.wait_apiserver(&client).await?;
        progress.show_live("starting the other parts");
        cluster.run(Part::Scheduler)?;
        if let Some(controller_manager) = options.controller_manager {
            cluster.start_controller_manager(controller_manager).await?;
        }
        cluster.run(Part::Kwok)?;
        // Operators start later, and with one of them the taint goes.
        let is_done = if options.has_node_lifecycle { nodes::is_ready } else { nodes::is_schedulable };
        cluster.add_and_wait(options.nodes, is_done).await?;
        Ok(cluster)
    }

    /// A cluster that is already there: the one of `kubeconfig`, or of `$KUBECONFIG` or `~/.kube/config`.
    pub fn external(kubeconfig: Option<PathBuf>) -> Result<Self> {
        let kubeconfig = kubeconfig
            .or_else(|| std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from))
            .or_else(|| std::env::home_dir().map(|home| home.join(".kube/config")))
            .context("no kubeconfig: set KUBECONFIG")?;
        Ok(Self { kubeconfig, local: None })
    }

    pub fn kind(&self) -> ClusterKind {
        if self.local.is_some() { ClusterKind::Local } else { ClusterKind::External }
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A new client of the administrator. It belongs to the current runtime, so each test makes its own.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig).await
    }

    /// Where the apiserver is.
    pub fn server(&self) -> Result<String> {
        Ok(self.local()?.parts.server())
    }

    pub fn pki(&self) -> Result<&Pki> {
        Ok(&self.local()?.pki)
    }

    /// Where logs, kubeconfigs and certificates are. Kept if the process panics, and the newest few after it was killed.
    pub fn run_dir(&self) -> Result<&Path> {
        Ok(self.local()?.run_dir.path())
    }

    /// Keeps the run's folder when the cluster ends, and says where it is.
    pub fn keep_logs(&self) {
        if let Some(local) = &self.local {
            local.run_dir.keep();
        }
    }

    /// The audit log, one JSON event a line, if [`ClusterOptions::audit`] asked for it.
    pub fn audit_log(&self) -> Result<&Path> {
        self.local()?.parts.audit_log().context("the cluster was started without an audit log")
    }

    /// Starts kube-controller-manager, which must not be running.
    pub async fn start_controller_manager(&self, controller_manager: ControllerManager) -> Result<()> {
        let local = self.local()?;
        local.parts.add_tools(Tools::find(&[Tool::KubeControllerManager], &mut Progress::default()).await?);
        local.parts.set_controller_manager(controller_manager);
        self.run(Part::ControllerManager)
    }

    /// Waits until kube-controller-manager is healthy: it has no other word for being ready.
    pub async fn wait_controller_manager(&self) -> Result<()> {
        wait_ok(self.local()?.parts.controller_manager_port(), "/healthz", || self.check_parts())
            .await
            .context("kube-controller-manager is not healthy")
    }

    /// Stops kube-controller-manager as a rollout would, by SIGTERM.
    pub async fn stop_controller_manager(&self) -> Result<()> {
        self.stop(Part::ControllerManager).await
    }

    /// Kills the apiserver and starts it again, at the same address, with `flags` besides ours.
    pub async fn restart_apiserver(&self, flags: Vec<String>) -> Result<()> {
        self.stop(Part::Apiserver).await?;
        self.local()?.parts.set_apiserver_flags(flags);
        self.run(Part::Apiserver)?;
        self.wait_apiserver(&self.client().await?).await
    }

    /// Stops a part by SIGTERM, and waits for its end. The apiserver is killed: it would wait for its watches to end.
    pub async fn stop(&self, part: Part) -> Result<()> {
        let process = self.lock_processes()?.remove(&part);
        let mut process = process.with_context(|| format!("{} does not run", part.name()))?;
        match part {
            Part::Apiserver => process.kill(),
            Part::Kwok | Part::ControllerManager | Part::Scheduler | Part::Etcd => {
                process.terminate(STOP_GRACE).await?;
            }
        }
        Ok(())
    }

    /// Lets a part stand still, and go on.
    pub fn suspend(&self, part: Part, suspended: bool) -> Result<()> {
        let mut processes = self.lock_processes()?;
        let process = processes.get_mut(&part).with_context(|| format!("{} does not run", part.name()))?;
        if suspended {
            process.suspend();
        } else {
            process.resume();
        }
        Ok(())
    }

    /// Ends a part by SIGKILL, as a crash would.
    pub fn kill(&self, part: Part) -> Result<()> {
        let process = self.lock_processes()?.remove(&part);
        process.with_context(|| format!("{} does not run", part.name()))?.kill();
        Ok(())
    }

    /// Starts a part that was stopped, with the flags it had. kwok then waits for its former leases to expire (40 s) before
    /// it plays a kubelet again; to stop one for a while there is [`Self::set_kubelet`].
    pub fn run(&self, part: Part) -> Result<()> {
        let local = self.local()?;
        let mut processes = self.lock_processes()?;
        if processes.contains_key(&part) {
            bail!("{} already runs", part.name());
        }
        processes.insert(part, Process::start(&local.guard, &local.parts.program(part))?);
        Ok(())
    }

    /// The usage of a part's process.
    pub fn usage(&self, part: Part) -> Result<Usage> {
        self.lock_processes()?.get(&part).with_context(|| format!("{} does not run", part.name()))?.usage()
    }

    /// The process number of a part.
    pub fn pid(&self, part: Part) -> Result<u32> {
        Ok(self.lock_processes()?.get(&part).with_context(|| format!("{} does not run", part.name()))?.id())
    }

    /// An error with the end of its log if a part has ended by itself.
    pub fn check_parts(&self) -> Result<()> {
        self.lock_processes()?.values_mut().try_for_each(Process::check_running)
    }

    /// The last lines of each operator's log, by its name.
    pub fn operator_logs(&self, lines: usize) -> Result<Vec<(String, String)>> {
        let is_part = |name: &str| Part::ALL.iter().any(|part| part.name() == name);
        let mut logs = self.local()?.run_dir.logs()?;
        logs.retain(|(name, _)| !is_part(name));
        Ok(logs.into_iter().map(|(name, log)| (name, log_tail(&log, lines))).collect())
    }

    pub(crate) fn guard(&self) -> Result<&Arc<Guard>> {
        Ok(&self.local()?.guard)
    }

    pub(crate) fn log_file(&self, name: &str) -> Result<PathBuf> {
        Ok(self.local()?.run_dir.log(name))
    }

    async fn wait_apiserver(&self, client: &Client) -> Result<()> {
        let end = Instant::now() + START_DEADLINE;
        loop {
            self.check_parts()?;
            let request = http::Request::get("/readyz").body(Vec::new()).context("ask for /readyz")?;
            match client.request_text(request).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= end => {
                    let log = log_tail(&self.log_file(Part::Apiserver.name())?, 15);
                    return Err(error).context(format!("the apiserver does not become ready; its log ends:\n{log}"));
                }
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn local(&self) -> Result<&Local> {
        self.local.as_ref().context("the cluster is not ours: only a local one has parts")
    }

    fn lock_processes(&self) -> Result<MutexGuard<'_, BTreeMap<Part, Process>>> {
        Ok(self.local()?.processes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A port for something that serves next to the cluster.
pub(crate) fn free_port() -> Result<u16> {
    let [port] = ports::free()?;
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_named_once() {
        let words = |names: &[&str]| ControllerManager::without(names).controllers;
        assert_eq!(ControllerManager::all().controllers, "*,bootstrap-signer-controller,token-cleaner-controller");
        assert_eq!(
            words(&["token-cleaner-controller", "job-controller"]),
            "*,bootstrap-signer-controller,-token-cleaner-controller,-job-controller"
        );
    }
}
