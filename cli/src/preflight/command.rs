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
    let client = Client::try_from(config).context("cannot make a client")?;
    let options = PreflightOptions { operators: operators(&names)?, program, kubeconfig, timeout: timeout.0, reach };
    let clock = Clock::system();
    let found = until_interrupted(preflight(client, options, || clock.now(), &progress)).await?;
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

/// Drops the work on Ctrl-C, on SIGTERM, and when the terminal is closed: shadows and their files go with it.
pub(super) async fn until_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("interrupted"),
        _ = hangup.recv() => bail!("interrupted"),
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
