//! `kubectl operators status`: a row for each operator at work, and who runs each controller.
//!
//! Left out: kube-controller-manager's part and alarms, which are tables over what was read.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use cli::reach::{ReachOptions, parse_server};
use cli::run::Session;
use cli::runner::Runner;
use cli::status::{Row, Status};
use e2e::operator::{is_one_process, upstream_controller};
use shared::process::flags::VERSION;

use crate::support::clusters::{manifests, shared_ports};
use crate::support::{DEADLINE, on_shared_cluster, operators};

#[test]
fn every_operator_has_a_row_and_runs_its_controller() -> Result<()> {
    on_shared_cluster(async |scene| {
        // The account by which the administrator, who has a client certificate, speaks to operators.
        scene.cluster.install(&manifests("viewer")).await?;
        let server = |(name, port): &(String, u16)| {
            parse_server(&format!("{name}=https://127.0.0.1:{port}")).map_err(anyhow::Error::msg)
        };
        let servers = shared_ports()?.iter().map(server).collect::<Result<_>>()?;
        let config = e2e::kubeconfig::config(scene.cluster.kubeconfig()).await?;
        let session = Session::new(config, ReachOptions { servers, ..ReachOptions::default() }).await?;
        scene.wait_until("all of them are shown", DEADLINE, async || all_are_shown(&session.status().await?)).await
    })
}

fn all_are_shown(status: &Status) -> Result<()> {
    let shown: BTreeSet<&str> = status.operators.iter().map(|row| row.operator.as_str()).collect();
    let all: BTreeSet<&str> = operators().collect();
    ensure!(shown == all, "{status}");
    for row in &status.operators {
        let Row { version, leader, since, synced, silence, .. } = row;
        ensure!(silence.is_empty() && version == VERSION && !leader.is_empty() && since.is_some(), "{row:?}");
        // One that reads everything live has no caches.
        ensure!(synced.is_some_and(|(synced, all)| synced <= all), "{row:?}");
    }
    let runner = if is_one_process() { Runner::Process } else { Runner::Operator };
    let run = status.controllers.iter().filter(|controller| controller.runner == runner);
    let run: BTreeSet<String> = run.map(|controller| controller.name.clone()).collect();
    let theirs: BTreeSet<String> = operators().map(upstream_controller).collect();
    ensure!(run == theirs, "{status}");
    Ok(())
}
