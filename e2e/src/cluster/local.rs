//! A cluster and its parts: where it is, and how parts stop and start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use super::parts::{Part, Parts};
use super::run_dir::RunDir;
use crate::cloud::ScriptedCloud;
use crate::guard::Guard;
use crate::kubeconfig;
use crate::pki::Pki;
use crate::process::{Process, log_tail};
use crate::usage::Usage;

/// How long a part may take from its start until it serves.
pub(super) const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long a part may take to end on SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    /// Started by us: parts can be stopped, pods behave as their annotations say (`e2e/kwok/pod.yaml`).
    Local,
    /// Already there, with the operators installed.
    External,
}

/// A running cluster. A local one ends, and leaves nothing running, when this is dropped or the process ends.
pub struct Cluster {
    pub(super) kubeconfig: PathBuf,
    pub(super) local: Option<Local>,
}

/// The programs and files of a local cluster. Fields are dropped in this order: processes before their files.
pub(super) struct Local {
    pub(super) processes: Mutex<BTreeMap<Part, Process>>,
    /// Started when somebody needs it.
    pub(super) cloud: OnceCell<ScriptedCloud>,
    /// Whether somebody takes the taint of new nodes away.
    pub(super) is_untainted: bool,
    pub(super) zones: u32,
    pub(super) parts: Parts,
    pub(super) pki: Pki,
    pub(super) guard: Arc<Guard>,
    pub(super) run_dir: RunDir,
}

impl Cluster {
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

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A new client of the administrator. It belongs to the current runtime, so each test makes its own.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig).await
    }

    pub fn server(&self) -> Result<String> {
        Ok(self.local()?.parts.server())
    }

    pub fn pki(&self) -> Result<&Pki> {
        Ok(&self.local()?.pki)
    }

    /// The cloud of this cluster, started if it does not run yet.
    pub async fn cloud(&self) -> Result<&ScriptedCloud> {
        let Local { cloud, guard, run_dir, .. } = self.local()?;
        let start = || ScriptedCloud::start(guard, run_dir.path(), run_dir.log("cloud"));
        cloud.get_or_try_init(start).await.context("start the cloud")
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

    /// The audit log, one JSON event a line, if [`audit`](super::ClusterOptions::audit) asked for it.
    pub fn audit_log(&self) -> Result<&Path> {
        self.local()?.parts.audit_log().context("the cluster was started without an audit log")
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

    pub fn usage(&self, part: Part) -> Result<Usage> {
        self.lock_processes()?.get(&part).with_context(|| format!("{} does not run", part.name()))?.usage()
    }

    /// Where kube-controller-manager, or the process in its place, serves.
    pub fn controller_manager_port(&self) -> Result<u16> {
        Ok(self.local()?.parts.controller_manager_port())
    }

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

    pub(super) async fn wait_apiserver(&self, client: &Client) -> Result<()> {
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

    pub(super) fn local(&self) -> Result<&Local> {
        self.local.as_ref().context("the cluster is not ours: only a local one has parts")
    }

    fn lock_processes(&self) -> Result<MutexGuard<'_, BTreeMap<Part, Process>>> {
        Ok(self.local()?.processes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
