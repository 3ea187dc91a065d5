//! The same steps under kube-controller-manager and under our operators, side by side, on a fresh local cluster each.
//!
//! Figures mean something only as ratios within one run: machines differ, and one machine's speed changes within minutes.
//! So the contestants of a round take each step, or each part of a long one, right after each other, while the others'
//! clusters rest; where there are too many nodes for that, they come one after the other with all steps.
//! Left out: verdicts. What is to be reached stands in the report next to what was measured.

mod apiserver;
mod audit;
mod contestant;
pub mod memory;
mod report;
mod steps;
mod turns;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};

use crate::cluster::{Cluster, ClusterOptions};
use crate::operator::OperatorSpec;
use crate::progress::Progress;
pub use contestant::Contestant;
use contestant::{Programs, Running};
use steps::{About, Bench, Measured, all, batch, garbage, identity, nodes, quota, services, sets, workloads};
use turns::Turns;

/// Which steps are measured, and whose work they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Set {
    /// Deployments and their pods.
    Workloads,
    /// Jobs and CronJobs.
    Batch,
    /// The EndpointSlices of Services.
    Services,
    /// Objects that go with their owner or their namespace.
    Garbage,
    /// StatefulSets, DaemonSets and budgets.
    Sets,
    /// Nodes that come, rest, are lost and lose their pods.
    Nodes,
    /// Certificates and tokens.
    Identity,
    /// Endpoints, quotas and autoscalers.
    Quota,
    /// All operators, at work on Deployments and at rest.
    All,
}

impl Set {
    fn about(self, options: &BenchOptions) -> Result<About> {
        Ok(match self {
            Self::Workloads => workloads::about(options),
            Self::Batch => batch::about(options),
            Self::Services => services::about(options),
            Self::Garbage => garbage::about(options),
            Self::Sets => sets::about(options),
            Self::Nodes => nodes::about(options),
            Self::Identity => identity::about(options),
            Self::Quota => quota::about(options),
            Self::All => all::about(options)?,
        })
    }

    /// Takes all steps in turn.
    async fn run(self, bench: &mut Bench<'_>) -> Result<()> {
        match self {
            Self::Workloads => workloads::run(bench).await,
            Self::Batch => batch::run(bench).await,
            Self::Services => services::run(bench).await,
            Self::Garbage => garbage::run(bench).await,
            Self::Sets => sets::run(bench).await,
            Self::Nodes => nodes::run(bench).await,
            Self::Identity => identity::run(bench).await,
            Self::Quota => quota::run(bench).await,
            Self::All => all::run(bench).await,
        }
    }
}

/// The steps to measure, their sizes, and the programs of the contestants.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchOptions {
    /// Which steps.
    #[arg(long, value_enum, default_value_t = Set::Workloads)]
    pub set: Set,
    #[command(flatten)]
    pub programs: Programs,
    /// Only steps in whose name one of these stands; what the others of a set only prepare is left out with them.
    #[arg(long, value_delimiter = ',')]
    pub steps: Vec<String>,
    /// Whether every operator runs from the program of all, so that they share its pages.
    #[arg(long)]
    pub one_program: bool,
    /// Whether the contestants elect leaders; unless given, only where all operators are measured.
    #[arg(long, action = clap::ArgAction::Set)]
    pub leader_elect: Option<bool>,
    /// How many times each contestant runs all steps.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// How many of these rounds the throttled kube-controller-manager takes part in; it is slow.
    #[arg(long, default_value_t = 1)]
    pub throttled_rounds: u32,
    /// The pods of the one large Deployment.
    #[arg(long, default_value_t = 1000)]
    pub pods: i32,
    /// How many pods there are when the controllers start again.
    #[arg(long, default_value_t = 5000)]
    pub present: i32,
    /// The sizes of one set's steps alone.
    #[command(flatten)]
    pub workloads: workloads::Sizes,
    #[command(flatten)]
    pub batch: batch::Sizes,
    #[command(flatten)]
    pub garbage: garbage::Sizes,
    #[command(flatten)]
    pub sets: sets::Sizes,
    #[command(flatten)]
    pub nodes: nodes::Sizes,
    #[command(flatten)]
    pub identity: identity::Sizes,
    #[command(flatten)]
    pub quota: quota::Sizes,
    #[command(flatten)]
    pub all: all::Sizes,
    /// Where the report goes; by default a page of the set's own in docs.
    #[arg(long)]
    pub output: Option<PathBuf>,
}

impl BenchOptions {
    /// Whether a step is asked for.
    fn wants(&self, step: &str) -> bool {
        self.steps.is_empty() || self.steps.iter().any(|part| step.contains(part.as_str()))
    }

    /// Whether the contestants hold Leases.
    fn is_leader_elected(&self) -> bool {
        self.leader_elect.unwrap_or(self.set == Set::All)
    }
}

/// Measures, and writes the report.
pub async fn run(options: &BenchOptions) -> Result<()> {
    let about = options.set.about(options)?;
    let mut measured = Vec::new();
    for round in 0..options.rounds {
        let takes_part =
            |contestant: &Contestant| *contestant != Contestant::Throttled || round < options.throttled_rounds;
        let contestants: Vec<Contestant> = Contestant::ALL.into_iter().filter(takes_part).collect();
        let at_a_time = if about.takes_turns() { contestants.len() } else { 1 };
        let turns = Turns::default();
        let runs = contestants.iter().map(|contestant| run_steps(options, &about, *contestant, round, &turns));
        let of_round: Vec<_> = stream::iter(runs).buffer_unordered(at_a_time).try_collect().await?;
        measured.extend(of_round.into_iter().flatten());
    }
    ensure!(!measured.is_empty(), "no step of this set has a name with any of {:?} in it", options.steps);
    report::write(options, &about, &measured)
}

/// All steps under one contestant, on a cluster of its own.
async fn run_steps(
    options: &BenchOptions,
    about: &About,
    contestant: Contestant,
    round: u32,
    turns: &Turns,
) -> Result<Vec<Measured>> {
    let turn = turns.wait().await;
    let mut progress = Progress::default();
    progress.finish(&format!("round {}: {contestant}", round + 1));
    let has_node_lifecycle = about.operators.iter().any(|name| name == "node-lifecycle-operator");
    let (nodes, zones) = (about.nodes, about.zones);
    let options_of_cluster =
        ClusterOptions { nodes, zones, has_node_lifecycle, audit: true, ..ClusterOptions::default() };
    let cluster = Cluster::start(options_of_cluster).await?;
    let mut helpers = Vec::new();
    for name in about.helpers {
        let spec = options.programs.install(name, options.one_program, &cluster).await?;
        let mut helper = cluster.start_operator(&OperatorSpec { leader_elect: false, ..spec }).await?;
        // Its watches are open, and not counted as the contestant's.
        helper.wait_ready().await?;
        helpers.push(helper);
    }
    let others = apiserver::settled_watches(&cluster.client().await?).await?;
    let running = Running::start(contestant, about, options, &cluster).await?;
    let mut bench = Bench::new(options, about, &cluster, running, others, turn).await?;
    options.set.run(&mut bench).await.with_context(|| format!("under {contestant}"))?;
    drop(helpers);
    Ok(bench.into_measured())
}
