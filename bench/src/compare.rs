//! The same steps under kube-controller-manager and under our operators, side by side, on a fresh local cluster each.
//!
//! Figures mean something only as ratios within one run: machines differ, and one machine's speed changes within minutes.
//! So the contestants of a round take each step, or each part of a long one, right after each other, while the others'
//! clusters rest; where there are too many nodes for that, they come one after the other with all steps.
//! Left out: verdicts. What is to be reached stands in the report next to what was measured.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, ClusterOptions};
use e2e::operator::OperatorSpec;
use e2e::progress::Progress;
use futures::{StreamExt, TryStreamExt, stream};

use crate::about::About;
use crate::contestant::Contestant;
use crate::figures::Measured;
use crate::measure::Bench;
use crate::options::BenchOptions;
use crate::running::Running;
use crate::turns::Turns;
use crate::{apiserver, report, steps};

pub(crate) async fn run(options: &BenchOptions) -> Result<()> {
    let about = steps::about(options.set, options)?;
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
    let name = contestant.name(about.upstream);
    progress.finish(&format!("round {}: {name}", round + 1));
    let has_node_lifecycle = about.operators.iter().any(|name| name == "node-lifecycle-operator");
    let (nodes, zones) = (about.nodes, about.zones);
    let options_of_cluster =
        ClusterOptions { nodes, zones, has_node_lifecycle, audit: true, ..ClusterOptions::default() };
    let options_of_cluster = if about.gated { options_of_cluster.with_gated_kinds() } else { options_of_cluster };
    let cluster = Cluster::start(options_of_cluster).await?;
    let mut helpers = Vec::new();
    for helper in about.helpers {
        let spec = options.programs.install(helper, options.one_program, &cluster).await?;
        let mut helper = cluster.start_operator(&OperatorSpec { leader_elect: false, ..spec }).await?;
        // Its watches are open, and not counted as the contestant's.
        helper.wait_ready().await?;
        helpers.push(helper);
    }
    let others = apiserver::settled_watches(&cluster.client().await?).await?;
    let running = Running::start(contestant, about, options, &cluster).await?;
    let mut bench = Bench::new(options, about, &cluster, running, others, turn).await?;
    steps::run(options.set, &mut bench).await.with_context(|| format!("under {name}"))?;
    drop(helpers);
    Ok(bench.into_measured())
}
