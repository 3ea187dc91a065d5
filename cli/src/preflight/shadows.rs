//! Runs shadows as processes on this machine, with the caller's kubeconfig. They end with this process, unless it is
//! killed; then they stay, without writing.
//!
//! Any user of this machine may take a shadow's port before the shadow does, so each run has a certificate of its own,
//! and nothing is sent to what has another one.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use kube::config::Kubeconfig;
use rustls::pki_types::CertificateDer;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use crate::reach::Server;

const PROGRAM: &str = "operators";
/// Lines of a failed shadow's log that are shown.
const LINES: usize = 3;

pub(super) struct Launcher {
    program: PathBuf,
    kubeconfig: NamedTempFile,
    certificate: CertificateDer<'static>,
    certificate_file: NamedTempFile,
    key: NamedTempFile,
}

/// A running shadow; dropping it kills the process.
pub(super) struct Shadow {
    child: Child,
    log: NamedTempFile,
    server: Server,
}

impl Launcher {
    /// Writes the caller's kubeconfig, with the chosen context, and a new key to files that only the caller can read.
    pub(super) fn new(program: Option<PathBuf>, kubeconfig: &Kubeconfig) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.context("cannot make a certificate for shadows")?;
        let kubeconfig = serde_json::to_string(kubeconfig).context("cannot write the kubeconfig for shadows")?;
        Ok(Self {
            program: program.unwrap_or_else(default_program),
            kubeconfig: file_of(&kubeconfig)?,
            certificate: made.cert.der().clone(),
            certificate_file: file_of(&made.cert.pem())?,
            key: file_of(&made.signing_key.serialize_pem())?,
        })
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
        let log = file_of("")?;
        let (out, err) = (log.reopen().context("cannot open a log")?, log.reopen().context("cannot open a log")?);
        let port = free_port()?;
        let child = Command::new(&self.program)
            .arg(operator)
            .arg("--mode=shadow")
            .arg(format!("--kubeconfig={}", self.kubeconfig.path().display()))
            .arg(format!("--tls-cert-file={}", self.certificate_file.path().display()))
            .arg(format!("--tls-private-key-file={}", self.key.path().display()))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--secure-port={port}"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {} {operator}", self.program.display()))?;
        Ok(Shadow { child, log, server: Server::pinned(port, self.certificate.clone())? })
    }
}

impl Shadow {
    pub(super) fn server(&self) -> Server {
        self.server.clone()
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

/// A file for the caller alone, which goes with its value.
fn file_of(content: &str) -> Result<NamedTempFile> {
    let mut file = NamedTempFile::with_prefix("kubectl-operators-").context("cannot create a file for shadows")?;
    file.write_all(content.as_bytes()).context("cannot write a file for shadows")?;
    Ok(file)
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
    use std::future::pending;
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::{Signal, getpid, kill_process};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::sign::CertifiedKey;
    use tempfile::TempDir;

    use super::*;
    use crate::preflight::command::until_interrupted;

    /// A shadow that is this shell script, in the folder.
    fn run(script: &str) -> Result<(TempDir, Launcher, Shadow)> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("script");
        std::fs::write(&path, script)?;
        let user = r#"{"name": "u", "user": {"token": "secret"}}"#;
        let kubeconfig = format!(r#"{{"current-context": "a", "clusters": [], "contexts": [], "users": [{user}]}}"#);
        let launcher = Launcher::new(Some("/bin/sh".into()), &Kubeconfig::from_yaml(&kubeconfig)?)?;
        let shadow = launcher.start(&path.display().to_string(), &[])?;
        Ok((folder, launcher, shadow))
    }

    fn files(Launcher { program: _, kubeconfig, certificate: _, certificate_file, key }: &Launcher) -> [PathBuf; 3] {
        [kubeconfig, certificate_file, key].map(|file| file.path().to_owned())
    }

    #[tokio::test]
    async fn a_shadow_gets_the_kubeconfig_and_the_certificate_that_it_is_known_by() {
        let (_folder, _launcher, mut shadow) = run(r#"printf '%s\n' "$@""#).unwrap();
        assert!(shadow.child.wait().await.unwrap().success());
        let flags = std::fs::read_to_string(shadow.log.path()).unwrap();
        let file = |flag: &str| {
            let path = flags.lines().find_map(|line| line.strip_prefix(flag)?.strip_prefix('=')).unwrap();
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{path}");
            std::fs::read_to_string(path).unwrap()
        };
        let kubeconfig = file("--kubeconfig");
        assert!(kubeconfig.contains(r#""token":"secret""#), "{kubeconfig}");
        assert!(kubeconfig.contains(r#""current-context":"a""#), "{kubeconfig}");
        let certificate = CertificateDer::from_pem_slice(file("--tls-cert-file").as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(file("--tls-private-key-file").as_bytes()).unwrap();
        let port: u16 = flags.lines().find_map(|line| line.strip_prefix("--secure-port=")).unwrap().parse().unwrap();
        assert_eq!(shadow.server(), Server::pinned(port, certificate.clone()).unwrap());
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(vec![certificate], key, &provider).unwrap();
    }

    #[tokio::test]
    async fn a_closed_terminal_ends_the_shadows_and_leaves_no_file() {
        let (_folder, launcher, mut shadow) = run("exec tail -f /dev/null").unwrap();
        assert_eq!(shadow.ended(), None);
        let (files, log) = (files(&launcher), shadow.log.path().to_owned());
        let command_line = format!("/proc/{}/cmdline", shadow.child.id().unwrap());
        let preflight = async move {
            let _running = (launcher, shadow);
            kill_process(getpid(), Signal::HUP)?;
            pending::<Result<()>>().await
        };
        assert_eq!(until_interrupted(preflight).await.unwrap_err().to_string(), "interrupted");
        assert!(files.iter().chain([&log]).all(|file| !file.exists()), "{files:?} {log:?}");
        // A killed process is gone, or a zombie without a command line.
        while std::fs::read(&command_line).is_ok_and(|words| !words.is_empty()) {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn the_end_of_a_log_is_enough() {
        assert_eq!(tail("a\nb\n\nc\nd\n"), "b | c | d");
        assert_eq!(tail(""), "");
    }
}
