//! The command line of the local cluster: `run` shows the operators at work, `bench` measures them, `cluster` is only
//! the cluster, `tools` only finds or builds programs of upstream's.
//! Left out: building the operators. `make run` does that first.

mod run;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use e2e::bench::memory::{self, MemoryOptions};
use e2e::bench::{self, BenchOptions};
use e2e::cluster::{Cluster, ClusterOptions, ControllerManager};
use e2e::progress::Progress;
use e2e::tools::{Tool, Tools};
use tokio::signal::unix::{SignalKind, signal};

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
    /// Finds programs of upstream's, builds those that are missing, and prints where they are.
    Tools {
        /// Which ones.
        #[arg(value_enum, default_values_t = Tool::OF_A_CLUSTER)]
        programs: Vec<Tool>,
    },
    /// The same work under kube-controller-manager and under the operators, measured side by side.
    Bench(BenchOptions),
    /// The memory of all operators together, each in its own program and all in one; as a table.
    Memory(MemoryOptions),
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
        Command::Tools { programs } => tools(&programs).await,
        Command::Bench(options) => bench::run(&options).await,
        Command::Memory(options) => print(&memory::run(&options).await?),
    }
}

/// On Ctrl-C or SIGTERM `work` is dropped where it stands, and with it all it has started.
async fn until_interrupted(work: impl Future<Output = Result<()>>) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut hangup = signal(SignalKind::hangup()).context("listen for SIGHUP")?;
    tokio::select! {
        ended = work => ended,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = hangup.recv() => Ok(()),
    }
}

async fn cluster(nodes: u32, controllers: String) -> Result<()> {
    let mut progress = Progress::default();
    let controller_manager = Some(ControllerManager { controllers, flags: Vec::new() });
    let options = ClusterOptions { nodes, controller_manager, ..ClusterOptions::default() };
    let cluster = Cluster::start_with(options, &mut progress).await?;
    progress.finish(&format!("{nodes} nodes are ready; Ctrl-C ends it all"));
    print(&format!("export KUBECONFIG={}\n", cluster.kubeconfig().display()))?;
    run::stay(&cluster, &mut []).await
}

async fn tools(programs: &[Tool]) -> Result<()> {
    let tools = Tools::find(programs, &mut Progress::default()).await?;
    for tool in programs {
        print(&format!("{}\n", tools.path(*tool).display()))?;
    }
    Ok(())
}

/// To stdout: what someone may want to read by machine.
fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("print")
}
