//! A backup of etcd's data, and a restore of it, as after the loss of a control plane.
//! Left out: etcd's own snapshots, which need one more tool and mean the same: what happened since is gone.

use anyhow::{Context, Result};

use super::local::Cluster;
use super::parts::Part;
use crate::folder;

impl Cluster {
    /// Copies what etcd stores; etcd is away for a moment.
    pub async fn back_up(&self) -> Result<()> {
        self.stop(Part::Etcd).await?;
        let run_dir = &self.local()?.run_dir;
        folder::copy(&run_dir.data(), &run_dir.backup())?;
        self.run(Part::Etcd)?;
        self.wait_apiserver(&self.client().await?).await
    }

    /// Makes etcd store what it had at the time of [`Self::back_up`], which is used up, and starts the apiserver anew.
    pub async fn restore(&self) -> Result<()> {
        self.stop(Part::Apiserver).await?;
        self.stop(Part::Etcd).await?;
        let run_dir = &self.local()?.run_dir;
        std::fs::remove_dir_all(run_dir.data()).context("remove etcd's data")?;
        std::fs::rename(run_dir.backup(), run_dir.data()).context("put the backup in its place")?;
        self.run(Part::Etcd)?;
        self.run(Part::Apiserver)?;
        self.wait_apiserver(&self.client().await?).await
    }
}
