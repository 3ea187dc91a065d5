//! The real kubectl, for what a person would type and for reading kustomize folders as everyone else's tools do.
//! Left out: any other use. What the library itself asks the apiserver, it asks through a client.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::process::Command;

use crate::apply::documents;
use crate::cluster::Cluster;
use crate::tools::{self, Tool};

impl Cluster {
    /// Runs kubectl against this cluster; what it prints, or an error with what it complains about.
    pub async fn kubectl<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String> {
        run(args, Some(self.kubeconfig())).await
    }
}

/// The objects of a kustomize folder.
pub async fn kustomize(dir: &Path) -> Result<Vec<Value>> {
    if !dir.is_dir() {
        bail!("there are no manifests in {}", dir.display());
    }
    documents(&run([OsStr::new("kustomize"), dir.as_os_str()], None).await?)
}

async fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, kubeconfig: Option<&Path>) -> Result<String> {
    let program = tools::find(Tool::Kubectl).context(
        "kubectl is neither on PATH nor in KUBEBUILDER_ASSETS, nor was it built for a local cluster: \
         https://kubernetes.io/docs/tasks/tools",
    )?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    let output = command.output().await.context("run kubectl")?;
    if !output.status.success() {
        let typed: Vec<_> = command.as_std().get_args().map(OsStr::to_string_lossy).collect();
        bail!("kubectl {} failed: {}", typed.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("kubectl prints UTF-8")
}
