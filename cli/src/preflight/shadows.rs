//! Runs shadows as processes on this machine, with the caller's kubeconfig. They end with this process, unless it is
//! killed; then they stay, without writing.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use http::Uri;
use kube::config::Kubeconfig;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

const PROGRAM: &str = "operators";
/// Lines of a failed shadow's log that are shown.
const LINES: usize = 3;

pub(super) struct Launcher {
    program: PathBuf,
    kubeconfig: NamedTempFile,
}

/// A running shadow; dropping it kills the process.
pub(super) struct Shadow {
    child: Child,
    log: NamedTempFile,
    port: u16,
}

impl Launcher {
    /// Writes the caller's kubeconfig, with the chosen context, to a file that only the caller can read.
    pub(super) fn new(program: Option<PathBuf>, kubeconfig: &Kubeconfig) -> Result<Self> {
        let mut file =
            NamedTempFile::with_prefix("kubectl-operators-").context("cannot create a kubeconfig for shadows")?;
        serde_json::to_writer(&mut file, kubeconfig).context("cannot write the kubeconfig for shadows")?;
        file.flush().context("cannot write the kubeconfig for shadows")?;
        Ok(Self { program: program.unwrap_or_else(default_program), kubeconfig: file })
    }

    /// Also shows that the program exists.
    pub(super) async fn help(&self, operator: &str) -> Result<String> {
        let program = self.program.display();
        let output = Command::new(&self.program).args([operator, "--help"]).stdin(Stdio::null()).output().await;
        let output = output.with_context(|| {
            format!("cannot run {program}, which contains all operators: build it with `make build PROGRAMS=operators`, or set --program")
        })?;
        if !output.status.success() {
            bail!("{program} {operator} --help: {}", tail(&String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(super) fn start(&self, operator: &str, flags: &[String]) -> Result<Shadow> {
        let log = NamedTempFile::with_prefix("kubectl-operators-").context("cannot create a log")?;
        let (out, err) = (log.reopen().context("cannot open a log")?, log.reopen().context("cannot open a log")?);
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
            .with_context(|| format!("cannot start {} {operator}", self.program.display()))?;
        Ok(Shadow { child, log, port })
    }
}

impl Shadow {
    pub(super) fn address(&self) -> Result<Uri> {
        format!("https://127.0.0.1:{}", self.port).parse().context("invalid address")
    }

    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        Some(format!("the shadow exited ({status}): {}", tail(&log)))
    }

    pub(super) async fn end(mut self) -> Result<()> {
        self.child.kill().await.context("cannot stop a shadow")
    }
}

/// The program next to this one, or on the PATH.
fn default_program() -> PathBuf {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join(PROGRAM));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM))
}

/// A process cannot inherit a socket to listen on, so another process may take the port first.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?;
    Ok(listener.local_addr().context("cannot find a free port")?.port())
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
