//! One started program: its log file, its signals, and what it costs.
//! Left out: restarting what has died. A part that dies on its own is a finding, not something to hide.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};

use crate::guard::Guard;
use crate::usage::Usage;

/// How often an end is looked for: the children are not tokio's, so that they can be reaped without a runtime.
const POLL: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    pub args: Vec<OsString>,
    /// Appended to by each start.
    pub log: PathBuf,
}

impl Program {
    pub fn new(path: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new(), log: log.into() }
    }

    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A running program; killed when dropped.
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    log: PathBuf,
    status: Option<ExitStatus>,
    guard: Arc<Guard>,
}

impl Process {
    pub fn start(guard: &Arc<Guard>, program: &Program) -> Result<Self> {
        let name = program.name();
        if !program.path.is_file() {
            bail!("{name} is not built: there is no {}", program.path.display());
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&program.log)
            .with_context(|| format!("open {}", program.log.display()))?;
        let child = guard
            .command(&program.path)?
            .args(&program.args)
            .stdout(log.try_clone().context("share the log file")?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {name}"))?;
        let pid = Pid::from_child(&child);
        Ok(Self { name, child, pid, log: program.log.clone(), status: None, guard: Arc::clone(guard) })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.reaped(status);
        }
        self.status
    }

    /// An error with the end of its log if it has ended.
    pub fn check_running(&mut self) -> Result<()> {
        match self.status() {
            None => Ok(()),
            Some(status) => bail!("{} has ended ({status}):\n{}", self.name, log_tail(&self.log, 15)),
        }
    }

    pub fn kill(&mut self) {
        if self.status().is_some() {
            return;
        }
        self.signal(Signal::KILL);
        if let Ok(status) = self.child.wait() {
            self.reaped(status);
        }
    }

    /// SIGTERM, and waits at most `grace` for the end; still running then is an error, and it is killed.
    pub async fn terminate(&mut self, grace: Duration) -> Result<ExitStatus> {
        self.send_terminate();
        let ended = self.wait(grace).await;
        if ended.is_err() {
            self.kill();
        }
        ended
    }

    pub fn send_terminate(&mut self) {
        if self.status().is_none() {
            self.signal(Signal::TERM);
        }
    }

    /// SIGSTOP: alive but not running, as a machine that has been suspended.
    pub fn suspend(&mut self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Waits for it to end by itself.
    pub async fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + deadline;
        loop {
            if let Some(status) = self.status() {
                return Ok(status);
            }
            if Instant::now() >= end {
                bail!("{} still runs after {} s", self.name, deadline.as_secs_f32());
            }
            sleep(POLL).await;
        }
    }

    /// Its memory at the moment, and its CPU time so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.id()).with_context(|| format!("measure {}", self.name))
    }

    /// Only while it has not been reaped: its number may be another's afterwards.
    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    fn reaped(&mut self, status: ExitStatus) {
        self.status = Some(status);
        self.guard.forget(self.child.id());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last `lines` lines of a log file; empty if it cannot be read.
pub fn log_tail(log: &Path, lines: usize) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
