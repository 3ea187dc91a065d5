//! The benchmark: the operators beside kube-controller-manager on local clusters, and the operators' memory.
//! Left out: building what is measured. `make bench` does that first.

mod about;
mod apiserver;
mod audit;
mod compare;
mod contestant;
mod figures;
mod late_cloud;
mod measure;
mod memory;
mod options;
mod programs;
mod report;
mod running;
mod sizes;
mod steps;
mod summary;
mod turns;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use e2e::terminal::{print, until_interrupted};
use memory::MemoryOptions;
use options::BenchOptions;

/// Measures the operators.
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The same work under kube-controller-manager and under the operators, measured side by side.
    Compare(Box<BenchOptions>),
    /// The memory of all operators together, each in its own program and all in one; as a table.
    Memory(MemoryOptions),
}

#[tokio::main]
async fn main() -> ExitCode {
    match until_interrupted(execute(Cli::parse().command)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn execute(command: Command) -> Result<()> {
    match command {
        Command::Compare(options) => compare::run(&options).await,
        Command::Memory(options) => print(&memory::run(&options).await?),
    }
}
