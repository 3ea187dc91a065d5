//! Runs a shadow of an operator on this machine, with the caller's kubeconfig, until it is asked no more.
//!
//! Each is a process of its own, which serves on this machine alone and ends with the command. Left out: shadows of a
//! command that was killed by force. They go on and write nothing, until somebody ends them.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use http::Uri;
use kube::config::Kubeconfig;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

/// The program that has all operators in it.
const PROGRAM: &str = "operators";
/// So many lines of a shadow's log are shown where it failed.
const LINES: usize = 3;

/// The program and the kubeconfig from which shadows are started.
pub(super) struct Launcher {
    program: PathBuf,
    kubeconfig: NamedTempFile,
}

/// A shadow that runs, until this is dropped.
pub(super) struct Shadow {
    child: Child,
    log: NamedTempFile,
    port: u16,
}

impl Launcher {
    /// Shadows find the cluster in a file of their own, which nobody else may read: it is the caller's kubeconfig with the
    /// context that was chosen.
    pub(super) fn new(program: Option<PathBuf>, kubeconfig: &Kubeconfig) -> Result<Self> {
        let mut file = NamedTempFile::with_prefix("kubectl-operators-").context("make a kubeconfig for shadows")?;
        serde_json::to_writer(&mut file, kubeconfig).context("write a kubeconfig for shadows")?;
        file.flush().context("write a kubeconfig for shadows")?;
        Ok(Self { program: program.unwrap_or_else(beside), kubeconfig: file })
    }

    /// The text of an operator's `--help`; also shows that the program is there.
    pub(super) async fn help(&self, operator: &str) -> Result<String> {
        let program = self.program.display();
        let output = Command::new(&self.program).args([operator, "--help"]).stdin(Stdio::null()).output().await;
        let output = output.with_context(|| {
            format!("run {program}: it has all operators in it, `make build PROGRAMS=operators` builds it; --program names another")
        })?;
        if !output.status.success() {
            bail!("{program} {operator} --help: {}", tail(&String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts the shadow of an operator.
    pub(super) fn start(&self, operator: &str, flags: &[String]) -> Result<Shadow> {
        let log = NamedTempFile::with_prefix("kubectl-operators-").context("make a log")?;
        let (out, err) = (log.reopen().context("open a log")?, log.reopen().context("open a log")?);
        let port = free_port()?;
        let child = Command::new(&self.program)
            .arg(operator)
            .arg("--mode=shadow")
            .arg(format!("--kubeconfig={}", self.kubeconfig.path().display()))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--secure-port={port}"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {} {operator}", self.program.display()))?;
        Ok(Shadow { child, log, port })
    }
}

impl Shadow {
    /// Where it is asked.
    pub(super) fn address(&self) -> Result<Uri> {
        format!("https://127.0.0.1:{}", self.port).parse().context("an address")
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        Some(format!("the shadow ended ({status}): {}", tail(&log)))
    }

    /// Ends it, and waits until it is gone.
    pub(super) async fn end(mut self) -> Result<()> {
        self.child.kill().await.context("end a shadow")
    }
}

/// The program beside this one, or else the one on the PATH.
fn beside() -> PathBuf {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join(PROGRAM));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM))
}

/// One that was free a moment ago: a process cannot be handed a socket that it would listen on.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr().context("find a free port")?.port())
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_kubeconfig_is_whole_and_nobody_elses() {
        let text =
            r#"{"current-context":"a","clusters":[],"contexts":[],"users":[{"name":"u","user":{"token":"secret"}}]}"#;
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        let launcher = Launcher::new(None, &kubeconfig).unwrap();
        let path = launcher.kubeconfig.path().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.contains(r#""token":"secret""#) && written.contains(r#""current-context":"a""#), "{written}");
        drop(launcher);
        assert!(!path.exists());
    }

    #[test]
    fn the_end_of_a_log_is_enough() {
        assert_eq!(tail("a\nb\n\nc\nd\n"), "b | c | d");
        assert_eq!(tail(""), "");
    }
}
