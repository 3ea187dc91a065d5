//! The start of a local cluster, and of kube-controller-manager where one is wanted.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tools::progress::Progress;
use tools::{Tool, Tools};

use super::local::{Cluster, Local};
use super::nodes;
use super::options::{ClusterOptions, ControllerManager, Manager, Source};
use super::parts::{Part, Parts};
use super::run_dir::RunDir;
use crate::guard::Guard;
use crate::pki::Pki;
use crate::ports::free_port;
use crate::process::Program;
use crate::serving::wait_ok;

const ACCOUNTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests/one-process/accounts");

impl Cluster {
    /// Starts a local cluster and waits until its nodes are ready.
    pub async fn start(options: ClusterOptions) -> Result<Self> {
        Self::start_with(options, &mut Progress::default()).await
    }

    /// As [`Self::start`], showing what goes on.
    pub async fn start_with(options: ClusterOptions, progress: &mut Progress) -> Result<Self> {
        let tools = find(Tool::OF_A_CLUSTER.into()).await?;
        progress.show_live("starting the apiserver");
        let run_dir = RunDir::create()?;
        let guard = Arc::new(Guard::start(&run_dir.data())?);
        let pki = Pki::create(&run_dir.path().join("pki"))?;
        let parts = Parts::new(tools, &run_dir, &pki, &options)?;
        let (is_untainted, zones) = (options.is_untainted(), options.zones);
        let (kubeconfig, processes, cloud) = (parts.kubeconfig("admin"), Mutex::default(), OnceCell::new());
        let local = Local { processes, cloud, is_untainted, zones, parts, pki, guard, run_dir };
        let cluster = Self { kubeconfig, local: Some(local) };
        cluster.run(Part::Etcd)?;
        cluster.run(Part::Apiserver)?;
        let client = cluster.client().await?;
        cluster.wait_apiserver(&client).await?;
        progress.show_live("starting the other parts");
        cluster.run(Part::Scheduler)?;
        if let Some(controller_manager) = options.controller_manager {
            if matches!(controller_manager.program, Manager::OneProcess(_)) {
                cluster.install_one_process().await?;
            }
            cluster.start_controller_manager(controller_manager).await?;
        }
        cluster.run(Part::Kwok)?;
        // Operators start later, and with one of them the taint goes.
        let is_done = if options.has_node_lifecycle { nodes::is_ready } else { nodes::is_schedulable };
        cluster.add_and_wait(options.nodes, is_done).await?;
        Ok(cluster)
    }

    /// The accounts that a process of all controllers acts as.
    pub async fn install_one_process(&self) -> Result<()> {
        self.install_accounts(Path::new(ACCOUNTS)).await.map(drop)
    }

    /// Starts kube-controller-manager, or the program that takes its place; neither may be running.
    pub async fn start_controller_manager(&self, controller_manager: ControllerManager) -> Result<()> {
        self.prepare(&controller_manager).await?;
        self.local()?.parts.set_controller_manager(controller_manager);
        self.run(Part::ControllerManager)
    }

    /// Finds upstream's program, and starts the cloud that it or the one process works with.
    async fn prepare(&self, of: &ControllerManager) -> Result<()> {
        if let Source::Tool(tool) = of.program.source() {
            self.local()?.parts.add_tools(find(vec![tool]).await?);
        }
        if of.program.cloud_endpoint().is_some() {
            self.cloud().await?;
        }
        Ok(())
    }

    /// The program of a member of kube-controller-manager's election, with flags, and where it serves.
    pub(crate) async fn control_plane(&self, name: &str, of: &ControllerManager) -> Result<(Program, u16)> {
        self.prepare(of).await?;
        let local = self.local()?;
        let port = free_port()?;
        Ok((local.parts.control_plane(of, port, self.log_file(name)?), port))
    }

    /// Waits until it is ready. Upstream's has no other word for that than being healthy.
    pub async fn wait_controller_manager(&self) -> Result<()> {
        let parts = &self.local()?.parts;
        let path = if parts.runs_one_process() { "/readyz" } else { "/healthz" };
        wait_ok(parts.controller_manager_port(), path, || self.check_parts())
            .await
            .with_context(|| format!("kube-controller-manager does not answer {path}"))
    }
}

async fn find(wanted: Vec<Tool>) -> Result<Tools> {
    spawn_blocking(move || Tools::find(&wanted, &mut Progress::default())).await.context("look for the programs")?
}
