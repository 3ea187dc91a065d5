//! A program's terminal: the signals that end its work, and what it prints.

use std::io::Write;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

/// On Ctrl-C or SIGTERM `work` is dropped where it stands, and with it all it has started.
pub async fn until_interrupted(work: impl Future<Output = Result<()>>) -> Result<()> {
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

/// To stdout: what someone may want to read by machine.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("print")
}
