//! `kubectl operators preflight`: runs it, shows progress, prints the result.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::config::Kubeconfig;
use shared::transport::clock::Clock;
use tokio::signal::unix::{SignalKind, signal};

use super::look::{ANSWERED, PreflightOptions, preflight};
use super::report::Outcome;
use super::roles::operators;
use crate::connect::config_of;
use crate::flags::{Output, PreflightFlags};
use crate::output::{Verdict, json, print};
use crate::reach::ReachOptions;
use crate::words::list;

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
    let client = Client::try_from(config).context("cannot make a client")?;
    let options = PreflightOptions { operators: operators(&names)?, program, kubeconfig, timeout: timeout.0, reach };
    let clock = Clock::system();
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    // Shadows end when the future that runs them is dropped.
    let found = tokio::select! {
        found = preflight((client, auth), options, || clock.now(), &progress) => found?,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("interrupted"),
    };
    if std::io::stderr().is_terminal() {
        eprint!("{CLEAR_LINE}");
    }
    print(&if output == Output::Json { json(&found)? } else { found.to_string() })?;
    match found.outcome() {
        Outcome::Clear => Ok(Verdict::Well),
        Outcome::NotClear => Ok(Verdict::Stuck),
        Outcome::Unanswered => bail!("some shadows gave no answer"),
    }
}

const CLEAR_LINE: &str = "\r\x1b[K";

fn progress(states: &BTreeMap<&'static str, String>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let open = states.iter().filter(|(_, state)| state.as_str() != ANSWERED);
    let open: Vec<String> = open.map(|(operator, state)| format!("{operator}: {state}")).collect();
    eprint!("{CLEAR_LINE}{} of {} done; {}", states.len() - open.len(), states.len(), list(&open));
}
