//! Helm's own program, for charts as a person installs them.
//! Left out: repositories and registries, which need a network.

use std::ffi::OsStr;
use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::process::Command;
use tools::Tool;

use crate::cluster::Cluster;
use crate::kubectl::printed;

impl Cluster {
    /// Runs Helm against this cluster; what it prints, or an error with what it complains about.
    pub async fn helm<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String> {
        run(args
            .into_iter()
            .map(|arg| arg.as_ref().to_owned())
            .chain(["--kubeconfig".into(), self.kubeconfig().into()]))
        .await
    }
}

/// Runs Helm without a cluster.
pub async fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Result<String> {
    let helm = tools::find(Tool::Helm).context("helm is neither on PATH nor built: make upstream TOOL=helm")?;
    // Nothing of the user's own.
    let home = tempfile::tempdir().context("make a folder for Helm")?;
    let mut command = Command::new(helm);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(name, home.path());
    }
    printed("helm", command).await
}
