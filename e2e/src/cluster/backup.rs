//! A backup of etcd's data, and a restore of it, as after the loss of a control plane.
//! Left out: etcd's own snapshots, which need one more tool and mean the same: what happened since is gone.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Cluster, Part};

impl Cluster {
    /// Copies what etcd stores; etcd is away for a moment.
    pub async fn back_up(&self) -> Result<()> {
        self.stop(Part::Etcd).await?;
        let run_dir = &self.local()?.run_dir;
        copy(&run_dir.data(), &run_dir.backup())?;
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

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("create {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("list {}", from.display()))? {
        let entry = entry.with_context(|| format!("list {}", from.display()))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target).with_context(|| format!("copy {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::create_dir_all(from.join("member/wal")).unwrap();
        std::fs::write(from.join("member/wal/0.wal"), "x").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::read_to_string(to.join("member/wal/0.wal")).unwrap(), "x");
    }
}
