//! The same steps under kube-controller-manager and under our operators, side by side, on a fresh local cluster each.
//!
//! Figures mean something only as ratios within one run: machines differ, and this one's other load counts for all alike.
//! Left out: verdicts. What is to be reached stands in the report next to what was measured.

mod audit;
mod contestant;
mod report;
mod steps;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cluster::{Cluster, ClusterOptions};
use crate::progress::Progress;
pub use contestant::Contestant;
use contestant::Running;
use report::Measured;
use steps::Step;

/// Which steps are measured, and whose work they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Set {
    /// Deployments and their pods.
    Workloads,
    /// Jobs and CronJobs.
    Batch,
}

impl Set {
    fn steps(self) -> &'static [Step] {
        match self {
            Self::Workloads => &[Step::Create, Step::Roll, Step::ScaleDown, Step::Many, Step::Restart],
            Self::Batch => &[Step::Job, Step::Jobs, Step::CronJobs],
        }
    }

    /// The operators that do the work.
    fn operators(self) -> [&'static str; 2] {
        match self {
            Self::Workloads => ["deployment-operator", "replicaset-operator"],
            Self::Batch => ["job-operator", "cronjob-operator"],
        }
    }

    fn output(self) -> &'static Path {
        Path::new(match self {
            Self::Workloads => "docs/benchmarks.md",
            Self::Batch => "docs/benchmarks-batch.md",
        })
    }
}

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchOptions {
    /// Which steps.
    #[arg(long, value_enum, default_value_t = Set::Workloads)]
    pub set: Set,
    /// The folder with the operators' release binaries.
    #[arg(long, default_value = "dist/bin")]
    pub bin: PathBuf,
    /// The folder with the operators' manifests.
    #[arg(long, default_value = "manifests")]
    pub manifests: PathBuf,
    /// How many times each contestant runs all steps.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// How many of these rounds the throttled kube-controller-manager takes part in; it is slow.
    #[arg(long, default_value_t = 1)]
    pub throttled_rounds: u32,
    /// The pods of the one large Deployment.
    #[arg(long, default_value_t = 1000)]
    pub pods: i32,
    /// How many small Deployments of two pods there are.
    #[arg(long, default_value_t = 300)]
    pub deployments: u32,
    /// How many pods there are when the controllers start again.
    #[arg(long, default_value_t = 5000)]
    pub present: i32,
    /// The pods of the one large Job.
    #[arg(long, default_value_t = 2000)]
    pub completions: i32,
    /// How many of them run at a time.
    #[arg(long, default_value_t = 200)]
    pub parallelism: i32,
    /// How many small Jobs of one pod there are.
    #[arg(long, default_value_t = 500)]
    pub jobs: u32,
    /// How many CronJobs are due at once.
    #[arg(long, default_value_t = 200)]
    pub cron_jobs: u32,
    /// Where the report goes; by default docs/benchmarks.md, or docs/benchmarks-batch.md.
    #[arg(long)]
    pub output: Option<PathBuf>,
}

/// Measures, and writes the report.
pub async fn run(options: &BenchOptions) -> Result<()> {
    let mut measured = Vec::new();
    for round in 0..options.rounds {
        for contestant in Contestant::ALL {
            if contestant == Contestant::Throttled && round >= options.throttled_rounds {
                continue;
            }
            measured.extend(run_steps(options, contestant, round).await?);
        }
    }
    report::write(options, &measured)
}

/// All steps under one contestant, on a cluster of its own.
async fn run_steps(options: &BenchOptions, contestant: Contestant, round: u32) -> Result<Vec<Measured>> {
    let mut progress = Progress::default();
    progress.finish(&format!("round {}: {contestant}", round + 1));
    // Every pod has a place: a node of kwok takes what it is given.
    let nodes = u32::try_from(options.present.max(options.completions) / 500 + 10)?;
    let cluster = Cluster::start(ClusterOptions { nodes, audit: true, ..ClusterOptions::default() }).await?;
    let mut running = Running::start(contestant, options, &cluster).await?;
    let mut measured = Vec::new();
    for &step in options.set.steps() {
        let figures = steps::run(step, options, &cluster, &mut running).await?;
        progress.finish(&format!("  {step}: {figures}"));
        measured.push(Measured { contestant, step, figures });
    }
    Ok(measured)
}
