//! Where the programs of the local cluster come from: `$KUBEBUILDER_ASSETS`, then `PATH`, then a per-user cache, which is
//! filled once by building them from their Go modules (`e2e/tools/*/go.mod` pin every version).
//! Left out: downloading binaries (a Go module proxy suffices), and any version but the reference version.

/// Of kwok as it is built here.
macro_rules! kwok_version {
    () => {
        "v0.8.0-resumes"
    };
}

mod build;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use tokio::time::sleep;

use crate::progress::Progress;

/// The Kubernetes version this project follows.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// A program that the local cluster consists of, or that a cluster is measured, looked at or tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Tool {
    Etcd,
    KubeApiserver,
    KubeScheduler,
    KubeControllerManager,
    Kwok,
    Kubectl,
    MetricsServer,
    Prometheus,
    PrometheusAdapter,
    /// Upstream's own e2e tests.
    #[value(name = "e2e.test")]
    E2eTest,
}

impl Tool {
    /// The programs of every local cluster. kube-controller-manager is built only where it takes part.
    pub const OF_A_CLUSTER: [Self; 5] =
        [Self::Etcd, Self::KubeApiserver, Self::KubeScheduler, Self::Kwok, Self::Kubectl];

    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeScheduler => "kube-scheduler",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kwok => "kwok",
            Self::Kubectl => "kubectl",
            Self::MetricsServer => "metrics-server",
            Self::Prometheus => "prometheus",
            Self::PrometheusAdapter => "prometheus-adapter",
            Self::E2eTest => "e2e.test",
        }
    }

    /// The arguments with which it prints its version.
    fn version_args(self) -> &'static [&'static str] {
        match self {
            Self::Kubectl => &["version", "--client"],
            Self::Etcd
            | Self::KubeApiserver
            | Self::KubeScheduler
            | Self::KubeControllerManager
            | Self::Kwok
            | Self::MetricsServer
            | Self::Prometheus
            | Self::PrometheusAdapter
            | Self::E2eTest => &["--version"],
        }
    }

    /// The beginning of an acceptable program's version line: any version of the user's own kubectl will do.
    fn accepted_version(self) -> &'static str {
        match self {
            Self::Etcd => "etcd Version: 3.6.",
            Self::KubeApiserver | Self::KubeScheduler | Self::KubeControllerManager => "Kubernetes v1.36.",
            // A released one is sent all pods again after each watch that breaks.
            Self::Kwok => concat!("kwok version ", kwok_version!()),
            Self::Kubectl => "Client Version: v1.",
            Self::MetricsServer => "v0.9.",
            Self::Prometheus => "prometheus, version 3.16.",
            // There is no other way to ask it.
            Self::PrometheusAdapter => "unknown flag: --version",
            Self::E2eTest => "v1.36.",
        }
    }

    /// Whether the program at `path` runs and is of a version that will do.
    fn accepts(self, path: &Path) -> bool {
        Command::new(path)
            .args(self.version_args())
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| self.accepts_version(&String::from_utf8_lossy(&output.stdout)))
    }

    fn accepts_version(self, printed: &str) -> bool {
        printed.starts_with(self.accepted_version())
    }
}

/// Programs that were found.
#[derive(Clone, Debug)]
pub struct Tools {
    paths: BTreeMap<Tool, PathBuf>,
}

impl Tools {
    /// Finds these programs; builds what is missing, which takes minutes the first time.
    pub async fn find(wanted: &[Tool], progress: &mut Progress) -> Result<Self> {
        let cache = cache_dir()?.join(KUBERNETES_VERSION).join("bin");
        let find = |tool: &Tool| Some((*tool, installed(*tool).or_else(|| cached(&cache, *tool))?));
        let mut tools = Self { paths: wanted.iter().filter_map(find).collect() };
        let missing: Vec<Tool> = wanted.iter().copied().filter(|tool| !tools.paths.contains_key(tool)).collect();
        if !missing.is_empty() {
            tools.build_missing(missing, &cache, progress).await?;
        }
        Ok(tools)
    }

    /// Takes over what others have found.
    pub fn add(&mut self, others: Self) {
        self.paths.extend(others.paths);
    }

    /// Where `tool` is.
    pub fn path(&self, tool: Tool) -> &Path {
        &self.paths[&tool]
    }

    /// Only one process builds; the others wait for it and then find its work.
    async fn build_missing(&mut self, missing: Vec<Tool>, cache: &Path, progress: &mut Progress) -> Result<()> {
        std::fs::create_dir_all(cache).with_context(|| format!("create {}", cache.display()))?;
        let lock = File::create(cache.join(".lock")).context("create the lock file of the tools")?;
        while lock.try_lock().is_err() {
            progress.show("waiting for another process that builds the tools");
            sleep(Duration::from_millis(200)).await;
        }
        let unbuilt: Vec<Tool> = missing.iter().copied().filter(|tool| cached(cache, *tool).is_none()).collect();
        build::build(&unbuilt, cache, progress).await?;
        for tool in missing {
            let path = cached(cache, tool).with_context(|| format!("{} was built, but does not run", tool.name()))?;
            self.paths.insert(tool, path);
        }
        Ok(())
    }
}

/// This project's folder in the user's cache.
pub fn cache_dir() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        Some(_) | None => std::env::home_dir().context("no home directory: set HOME or XDG_CACHE_HOME")?.join(".cache"),
    };
    Ok(base.join("kubernetes-operators"))
}

/// Where `tool` is, if it is there; nothing is built.
pub fn find(tool: Tool) -> Option<PathBuf> {
    let built = || Some(cache_dir().ok()?.join(KUBERNETES_VERSION).join("bin").join(tool.name()));
    find_program(tool.name()).or_else(|| built().filter(|path| path.is_file()))
}

/// The first program called `name` in `$KUBEBUILDER_ASSETS` or on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    program_dirs().map(|dir| dir.join(name)).find(|path| path.is_file())
}

fn installed(tool: Tool) -> Option<PathBuf> {
    program_dirs().map(|dir| dir.join(tool.name())).find(|path| path.is_file() && tool.accepts(path))
}

fn program_dirs() -> impl Iterator<Item = PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    assets.into_iter().chain(std::env::split_paths(&path).collect::<Vec<_>>())
}

fn cached(cache: &Path, tool: Tool) -> Option<PathBuf> {
    Some(cache.join(tool.name())).filter(|path| path.is_file() && tool.accepts(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_for_by_its_own_name() {
        for tool in Tool::value_variants() {
            assert_eq!(Tool::from_str(tool.name(), false), Ok(*tool));
        }
    }

    #[test]
    fn only_the_reference_versions_are_accepted() {
        assert!(Tool::Etcd.accepts_version("etcd Version: 3.6.16\nGit SHA: x"));
        assert!(!Tool::Etcd.accepts_version("etcd Version: 3.5.9"));
        assert!(Tool::KubeApiserver.accepts_version("Kubernetes v1.36.3"));
        assert!(!Tool::KubeScheduler.accepts_version("Kubernetes v1.35.0"));
        assert!(Tool::Kwok.accepts_version("kwok version v0.8.0-resumes go1.26.8 (linux/amd64)"));
        assert!(!Tool::Kwok.accepts_version("kwok version v0.8.0 go1.26.8 (linux/amd64)"));
        assert!(!Tool::Kwok.accepts_version(""));
        assert!(Tool::MetricsServer.accepts_version("v0.9.0"));
        assert!(Tool::Prometheus.accepts_version("prometheus, version 3.16.0 (branch: , revision: unknown)"));
        assert!(Tool::E2eTest.accepts_version("v1.36.3"));
        assert!(Tool::Kubectl.accepts_version("Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0"));
    }
}
