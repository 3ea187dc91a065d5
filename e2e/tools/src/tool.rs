//! The programs by their names, and the versions that will do.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::kubernetes::Kubernetes;

/// A program that the local cluster consists of, or that a cluster is measured, looked at or tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Etcd,
    KubeApiserver,
    KubeScheduler,
    KubeControllerManager,
    /// Upstream's controllers of clouds, with a cloud behind our protocol.
    CloudManager,
    Kwok,
    Kubectl,
    Helm,
    MetricsServer,
    Prometheus,
    Promtool,
    PrometheusAdapter,
    CsiAttacher,
    CsiProvisioner,
    CsiResizer,
    CsiSnapshotter,
    SnapshotController,
    /// Signs releases.
    Cosign,
    /// Upstream's own e2e tests.
    E2eTest,
    /// Runs them in several processes at a time.
    Ginkgo,
}

impl Tool {
    /// The programs of every local cluster. kube-controller-manager is built only where it takes part.
    pub const OF_A_CLUSTER: [Self; 5] =
        [Self::Etcd, Self::KubeApiserver, Self::KubeScheduler, Self::Kwok, Self::Kubectl];

    /// Every program.
    const ALL: [Self; 20] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeScheduler,
        Self::KubeControllerManager,
        Self::CloudManager,
        Self::Kwok,
        Self::Kubectl,
        Self::Helm,
        Self::MetricsServer,
        Self::Prometheus,
        Self::Promtool,
        Self::PrometheusAdapter,
        Self::CsiAttacher,
        Self::CsiProvisioner,
        Self::CsiResizer,
        Self::CsiSnapshotter,
        Self::SnapshotController,
        Self::Cosign,
        Self::E2eTest,
        Self::Ginkgo,
    ];

    /// The program of this name.
    pub fn named(name: &str) -> Result<Self> {
        let names = || Self::ALL.map(Self::name).join(", ");
        match Self::ALL.into_iter().find(|tool| tool.name() == name) {
            Some(tool) => Ok(tool),
            None => bail!("unknown program {name}; known are {}", names()),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeScheduler => "kube-scheduler",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::CloudManager => "cloud-manager",
            Self::Kwok => "kwok",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::MetricsServer => "metrics-server",
            Self::Prometheus => "prometheus",
            Self::Promtool => "promtool",
            Self::PrometheusAdapter => "prometheus-adapter",
            Self::CsiAttacher => "csi-attacher",
            Self::CsiProvisioner => "csi-provisioner",
            Self::CsiResizer => "csi-resizer",
            Self::CsiSnapshotter => "csi-snapshotter",
            Self::SnapshotController => "snapshot-controller",
            Self::Cosign => "cosign",
            Self::E2eTest => "e2e.test",
            Self::Ginkgo => "ginkgo",
        }
    }

    /// The arguments with which it prints its version.
    fn version_args(self) -> &'static [&'static str] {
        match self {
            Self::Kubectl => &["version", "--client"],
            Self::Helm | Self::Ginkgo => &["version"],
            // Without this it draws its name first.
            Self::Cosign => &["version", "--json"],
            Self::Etcd
            | Self::KubeApiserver
            | Self::KubeScheduler
            | Self::KubeControllerManager
            | Self::CloudManager
            | Self::Kwok
            | Self::MetricsServer
            | Self::Prometheus
            | Self::Promtool
            | Self::PrometheusAdapter
            | Self::CsiAttacher
            | Self::CsiProvisioner
            | Self::CsiResizer
            | Self::CsiSnapshotter
            | Self::SnapshotController
            | Self::E2eTest => &["--version"],
        }
    }

    /// Whether it has the version of Kubernetes that was chosen for the cluster.
    pub(crate) fn is_chosen(self) -> bool {
        matches!(self, Self::KubeApiserver | Self::KubeScheduler | Self::KubeControllerManager)
    }

    /// The beginning of an acceptable program's version line: any version of the user's own kubectl will do.
    fn accepted_version(self) -> &'static str {
        match self {
            Self::Etcd => "etcd Version: 3.6.",
            Self::KubeApiserver | Self::KubeScheduler | Self::KubeControllerManager => "Kubernetes v",
            // Our part of it has a number too, which counts its changes.
            Self::CloudManager => "Kubernetes v1.36.3+cloud.1\n",
            Self::Kwok => "kwok version v0.8.",
            Self::Kubectl => "Client Version: v1.",
            Self::Helm => "version.BuildInfo{Version:\"v4.",
            Self::MetricsServer => "v0.9.",
            Self::Prometheus => "prometheus, version 3.16.",
            Self::Promtool => "promtool, version 3.16.",
            // There is no other way to ask it.
            Self::PrometheusAdapter => "unknown flag: --version",
            Self::CsiAttacher => "v4.12.",
            Self::CsiProvisioner => "v6.3.",
            Self::CsiResizer => "v2.2.",
            Self::CsiSnapshotter | Self::SnapshotController => "v8.6.",
            Self::Cosign => "{\n  \"gitVersion\": \"v3.",
            Self::E2eTest => "v1.36.",
            Self::Ginkgo => "Ginkgo Version 2.",
        }
    }

    /// Whether the program at `path` runs and is of a version that will do.
    pub(crate) fn accepts(self, path: &Path, kubernetes: Kubernetes) -> bool {
        Command::new(path)
            .args(self.version_args())
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| self.accepts_version(path, &String::from_utf8_lossy(&output.stdout), kubernetes))
    }

    /// Some programs print first by which path they were started.
    fn accepts_version(self, path: &Path, printed: &str, kubernetes: Kubernetes) -> bool {
        let own = printed.strip_prefix(&*path.to_string_lossy()).map_or(printed, str::trim_start);
        let rest = own.strip_prefix(self.accepted_version());
        rest.is_some_and(|rest| !self.is_chosen() || rest.starts_with(&format!("{}.", kubernetes.minor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_for_by_its_own_name() {
        for tool in Tool::ALL {
            assert_eq!(Tool::named(tool.name()).unwrap(), tool);
        }
        assert!(Tool::named("kubelet").is_err());
    }

    #[test]
    fn only_the_reference_versions_are_accepted() {
        let followed = Kubernetes::FOLLOWED;
        let accepts = |tool: Tool, printed: &str| tool.accepts_version(Path::new("/bin/program"), printed, followed);
        assert!(accepts(Tool::Etcd, "etcd Version: 3.6.16\nGit SHA: x"));
        assert!(!accepts(Tool::Etcd, "etcd Version: 3.5.9"));
        assert!(accepts(Tool::KubeApiserver, "Kubernetes v1.36.3"));
        assert!(!accepts(Tool::KubeScheduler, "Kubernetes v1.35.0"));
        assert!(accepts(Tool::CloudManager, "Kubernetes v1.36.3+cloud.1\n"));
        assert!(!accepts(Tool::CloudManager, "Kubernetes v1.36.3+cloud.10\n"));
        assert!(accepts(Tool::Kwok, "kwok version v0.8.0 go1.26.8 (linux/amd64)"));
        assert!(!accepts(Tool::Kwok, "kwok version v0.7.0 go1.26.8 (linux/amd64)"));
        assert!(!accepts(Tool::Kwok, ""));
        assert!(accepts(Tool::Helm, "version.BuildInfo{Version:\"v4.3.2\", GitCommit:\"\"}"));
        assert!(!accepts(Tool::Helm, "version.BuildInfo{Version:\"v3.22.0\", GitCommit:\"\"}"));
        assert!(accepts(Tool::MetricsServer, "v0.9.0"));
        assert!(accepts(Tool::Prometheus, "prometheus, version 3.16.0 (branch: , revision: unknown)"));
        assert!(accepts(Tool::Promtool, "promtool, version 3.16.0 (branch: , revision: unknown)"));
        assert!(accepts(Tool::CsiResizer, "/bin/program v2.2.0"));
        assert!(!accepts(Tool::CsiResizer, "/bin/program unknown"));
        assert!(accepts(Tool::Cosign, "{\n  \"gitVersion\": \"v3.1.3\",\n"));
        assert!(!accepts(Tool::Cosign, "{\n  \"gitVersion\": \"v2.6.5\",\n"));
        assert!(accepts(Tool::E2eTest, "v1.36.3"));
        assert!(accepts(Tool::Ginkgo, "Ginkgo Version 2.28.0"));
        assert!(accepts(Tool::Kubectl, "Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0"));
    }
}
