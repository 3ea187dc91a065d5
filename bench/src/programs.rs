//! The programs that are measured.

use std::path::PathBuf;

use anyhow::{Context, Result};
use e2e::cluster::Cluster;
use e2e::operator::{ALL_IN_ONE, OperatorSpec};

/// Where what is measured comes from.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Programs {
    /// The folder with the release binaries: the operators', and that of all.
    #[arg(long, default_value = "dist/bin")]
    pub(crate) bin: PathBuf,
    /// The folder with the operators' manifests.
    #[arg(long, default_value = "manifests")]
    pub(crate) manifests: PathBuf,
}

impl Programs {
    /// Installs an operator, and says how it is run: by its own program or by that of all.
    pub(crate) async fn install(&self, name: &str, one_program: bool, cluster: &Cluster) -> Result<OperatorSpec> {
        let account = cluster.install(&self.manifests.join(name)).await?;
        let program = self.program(if one_program { ALL_IN_ONE } else { name })?;
        Ok(OperatorSpec::new(name, program, &account))
    }

    /// The program of all operators.
    pub(crate) fn all_in_one(&self) -> Result<PathBuf> {
        self.program(ALL_IN_ONE)
    }

    fn program(&self, name: &str) -> Result<PathBuf> {
        std::path::absolute(self.bin.join(name)).context("find the operators")
    }
}
