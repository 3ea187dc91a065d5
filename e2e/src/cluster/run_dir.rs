//! The folder of one run: logs, kubeconfigs and certificates, and etcd's data in a folder of its own.
//! Left out: keeping logs of runs that went well.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use tools::cache_dir;

/// How many folders of runs that did not end well are kept.
const KEPT_RUNS: usize = 5;

/// Removed at drop, unless something failed: then the logs are what one wants to read.
pub(super) struct RunDir {
    path: PathBuf,
    keep: AtomicBool,
}

impl RunDir {
    pub(super) fn create() -> Result<Self> {
        let runs = cache_dir()?.join("runs");
        std::fs::create_dir_all(&runs).with_context(|| format!("create {}", runs.display()))?;
        remove_old(&runs);
        let prefix = format!("{}-", std::process::id());
        let path = tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir_in(&runs)
            .with_context(|| format!("create a folder in {}", runs.display()))?
            .keep();
        std::fs::create_dir(path.join("logs")).context("create the folder of the logs")?;
        Ok(Self { path, keep: AtomicBool::new(false) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// etcd's data, of no use once the run is over.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join("etcd")
    }

    pub(super) fn backup(&self) -> PathBuf {
        self.path.join("etcd-backup")
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// Every log file by the name of its program.
    pub(super) fn logs(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut logs = Vec::new();
        for entry in std::fs::read_dir(self.path.join("logs")).context("list the logs")? {
            let path = entry.context("list the logs")?.path();
            logs.push((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path));
        }
        logs.sort();
        Ok(logs)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if thread::panicking() || self.keep.load(Ordering::Relaxed) {
            eprintln!("logs are kept in {}", self.path.join("logs").display());
        } else {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the oldest folders of processes that are gone. Another process may do the same: nothing here has to succeed.
fn remove_old(runs: &Path) {
    let Ok(entries) = std::fs::read_dir(runs) else { return };
    let mut ended: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| !owner_lives(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    ended.sort();
    let excess = ended.len().saturating_sub(KEPT_RUNS);
    for (_, path) in ended.drain(..excess) {
        let _ = std::fs::remove_dir_all(path);
    }
}

/// Whether the process in the folder's name (`PID-random`) still exists.
fn owner_lives(folder: &str) -> bool {
    folder.split_once('-').is_some_and(|(pid, _)| Path::new("/proc").join(pid).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_living_processes_are_theirs() {
        assert!(owner_lives(&format!("{}-abc", std::process::id())));
        assert!(!owner_lives("4294967295-abc"));
        assert!(!owner_lives("stray"));
    }
}
