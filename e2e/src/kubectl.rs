//! The real kubectl, for what a person would type and for reading kustomize folders as everyone else's tools do; and the
//! scripts that use it.
//! Left out: any other use. What the library itself asks the apiserver, it asks through a client.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::process::Command;
use tools::Tool;

use crate::apply::documents;
use crate::cluster::Cluster;

impl Cluster {
    /// Runs kubectl against this cluster; what it prints, or an error with what it complains about.
    pub async fn kubectl<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String> {
        run(args, Some(self.kubeconfig())).await
    }

    /// Runs one of `scripts/` against this cluster: whether it succeeded, and all that it prints.
    pub async fn script<A: AsRef<OsStr>>(
        &self,
        name: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<(bool, String)> {
        run_script(name, args, Some(self.kubeconfig())).await
    }
}

/// Runs one of `scripts/`, which finds kubectl on its PATH: whether it succeeded, and all that it prints.
pub async fn run_script<A: AsRef<OsStr>>(
    name: &str,
    args: impl IntoIterator<Item = A>,
    kubeconfig: Option<&Path>,
) -> Result<(bool, String)> {
    let kubectl = kubectl()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = kubectl.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name);
    let mut command = Command::new(script);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    command.env("PATH", std::env::join_paths(folders).context("a PATH with kubectl")?);
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    let output = command.output().await.with_context(|| format!("run {name}"))?;
    let printed = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&printed).into_owned()))
}

pub async fn kustomize(dir: &Path) -> Result<Vec<Value>> {
    if !dir.is_dir() {
        bail!("there are no manifests in {}", dir.display());
    }
    documents(&run([OsStr::new("kustomize"), dir.as_os_str()], None).await?)
}

fn kubectl() -> Result<PathBuf> {
    tools::find(Tool::Kubectl).context(
        "kubectl is neither on PATH nor in KUBEBUILDER_ASSETS, nor was it built for a local cluster: \
         https://kubernetes.io/docs/tasks/tools",
    )
}

async fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, kubeconfig: Option<&Path>) -> Result<String> {
    let mut command = Command::new(kubectl()?);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    printed("kubectl", command).await
}

/// What the program prints, or an error with what it complains about.
pub(crate) async fn printed(name: &str, mut command: Command) -> Result<String> {
    let output = command.output().await.with_context(|| format!("run {name}"))?;
    if !output.status.success() {
        let typed: Vec<_> = command.as_std().get_args().map(OsStr::to_string_lossy).collect();
        bail!("{name} {} failed: {}", typed.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} prints UTF-8"))
}
