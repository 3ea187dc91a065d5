//! `kubectl operators preflight`: runs it, shows how far it is, and prints the answer.
//!
//! Left out: the looking itself.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use anyhow::{Context, Result, bail};
use clap::Args;
use kube::Client;
use kube::config::Kubeconfig;
use shared::runtime::clock::Clock;
use shared::runtime::flags::GoDuration;
use tokio::signal::unix::{SignalKind, signal};

use super::{Outcome, PreflightOptions, operators, preflight};
use crate::flags::Output;
use crate::reach::ReachOptions;
use crate::run::{Verdict, config_of, json, print};
use crate::words::list;

#[derive(Args)]
pub(crate) struct PreflightFlags {
    /// The operators, by their names or their controllers': deployment, job-operator, cronjob-controller. All, if none.
    #[arg(value_name = "OPERATOR")]
    operators: Vec<String>,
    /// The program that has all operators in it; without it "operators" beside this program, or on the PATH.
    #[arg(long, value_name = "PATH")]
    program: Option<std::path::PathBuf>,
    /// How long each shadow may take to look at everything and see it at rest.
    #[arg(long, default_value = "5m0s", value_name = "DURATION")]
    timeout: GoDuration,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Runs a preflight with these flags.
pub(crate) async fn command(
    flags: PreflightFlags,
    mut kubeconfig: Kubeconfig,
    context: Option<String>,
    reach: ReachOptions,
) -> Result<Verdict> {
    let PreflightFlags { operators: names, program, timeout, output } = flags;
    let config = config_of(kubeconfig.clone(), context.clone()).await?;
    kubeconfig.current_context = context.or(kubeconfig.current_context);
    let auth = config.auth_info.clone();
    let client = Client::try_from(config).context("make a client")?;
    let options = PreflightOptions { operators: operators(&names)?, program, kubeconfig, timeout: timeout.0, reach };
    let clock = Clock::system();
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    // Shadows end when the future that runs them is dropped.
    let found = tokio::select! {
        found = preflight((client, auth), options, || clock.now(), &progress) => found?,
        _ = tokio::signal::ctrl_c() => bail!("interrupted: no answer"),
        _ = terminate.recv() => bail!("interrupted: no answer"),
    };
    if std::io::stderr().is_terminal() {
        eprint!("{CLEAR_LINE}");
    }
    print(&if output == Output::Json { json(&found)? } else { found.to_string() })?;
    match found.outcome() {
        Outcome::Clear => Ok(Verdict::Well),
        Outcome::NotClear => Ok(Verdict::Stuck),
        Outcome::Unanswered => bail!("not every shadow has come to an answer"),
    }
}

/// To the beginning of the line, and nothing on it.
const CLEAR_LINE: &str = "\r\x1b[K";

/// How far the shadows are, on one line of a terminal.
fn progress(states: &BTreeMap<&'static str, String>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let open = states.iter().filter(|(_, state)| state.as_str() != super::look::ANSWERED);
    let open: Vec<String> = open.map(|(operator, state)| format!("{operator}: {state}")).collect();
    eprint!("{CLEAR_LINE}{} of {} answered; {}", states.len() - open.len(), states.len(), list(&open));
}
