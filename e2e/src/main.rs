//! The command line of the local cluster: `run` shows the operators at work, `cluster` is only the cluster, `cloud` is a
//! cloud for a cluster, and `pictures` writes what the dashboards show.
//! Left out: building the operators. `make run` does that first.

mod pictures;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use e2e::cloud;
use e2e::cluster::{Cluster, ClusterOptions, ControllerManager};
use e2e::progress::Progress;
use e2e::terminal::{print, until_interrupted};

/// A local Kubernetes cluster, and the operators on it.
#[derive(Parser)]
#[command(name = "e2e")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A cluster with the operators, and a Deployment rolling out; until Ctrl-C.
    Run(run::RunFlags),
    /// A cluster with kube-controller-manager and no operators; until Ctrl-C.
    Cluster {
        /// How many nodes.
        #[arg(long, default_value_t = ClusterOptions::default().nodes)]
        nodes: u32,
        /// Which controllers of kube-controller-manager run, as its own flag says it.
        #[arg(long, default_value = "*")]
        controllers: String,
    },
    /// A cloud for the cloud operators that exists in a file; until Ctrl-C.
    Cloud {
        /// What exists in the cloud, and how calls fail. It is read at each call, and may be missing.
        file: PathBuf,
        /// The Unix socket to serve on.
        socket: PathBuf,
    },
    /// A cluster with all operators at work for some minutes, and pictures of the dashboards that show it.
    Pictures(pictures::PicturesFlags),
}

#[tokio::main]
async fn main() -> ExitCode {
    match until_interrupted(execute(Cli::parse().command)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("e2e: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn execute(command: Command) -> Result<()> {
    match command {
        Command::Run(flags) => run::run(&flags).await,
        Command::Cluster { nodes, controllers } => cluster(nodes, controllers).await,
        Command::Cloud { file, socket } => cloud::serve(file, &socket).await,
        Command::Pictures(flags) => pictures::record(&flags).await,
    }
}

async fn cluster(nodes: u32, controllers: String) -> Result<()> {
    let mut progress = Progress::default();
    let controller_manager = Some(ControllerManager { controllers, ..ControllerManager::all() });
    let options = ClusterOptions { nodes, controller_manager, ..ClusterOptions::default() };
    let cluster = Cluster::start_with(options, &mut progress).await?;
    progress.finish(&format!("{nodes} nodes are ready; Ctrl-C ends it all"));
    print(&format!("export KUBECONFIG={}\n", cluster.kubeconfig().display()))?;
    run::stay(&cluster, &mut []).await
}
