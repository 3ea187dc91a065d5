//! Builds the programs from the Go modules pinned in `e2e/tools/`.
//! Left out: cgo (the programs are static), and stripping symbols afterwards (the linker does it).

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::{KUBERNETES_VERSION, Tool, find_program};
use crate::progress::Progress;

/// One Go module: its programs share their compiled packages.
struct Module {
    dir: &'static str,
    /// Build tags, by which a program leaves parts of it out.
    tags: &'static str,
    flags: &'static str,
    /// The package of each program.
    packages: &'static [(Tool, &'static str)],
}

const MODULES: [Module; 6] = [
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/etcd"),
        tags: "",
        flags: "-s -w",
        packages: &[(Tool::Etcd, "go.etcd.io/etcd/server/v3")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/kwok"),
        tags: "",
        flags: "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0",
        packages: &[(Tool::Kwok, "sigs.k8s.io/kwok/cmd/kwok")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/metrics-server"),
        tags: "",
        flags: "-s -w -X k8s.io/client-go/pkg/version.gitVersion=v0.9.0",
        packages: &[(Tool::MetricsServer, "sigs.k8s.io/metrics-server/cmd/metrics-server")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/prometheus"),
        // Ways to find what it scrapes, most of them with libraries of a cloud: all but the cluster's own.
        tags: "remove_all_sd enable_kubernetes_sd",
        flags: "-s -w -X github.com/prometheus/common/version.Version=3.16.0",
        packages: &[(Tool::Prometheus, "github.com/prometheus/prometheus/cmd/prometheus")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/prometheus-adapter"),
        tags: "",
        flags: "-s -w",
        packages: &[(Tool::PrometheusAdapter, "sigs.k8s.io/prometheus-adapter/cmd/adapter")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/kubernetes"),
        tags: "",
        flags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
                -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
        packages: &[
            (Tool::KubeApiserver, "k8s.io/kubernetes/cmd/kube-apiserver"),
            (Tool::KubeScheduler, "k8s.io/kubernetes/cmd/kube-scheduler"),
            (Tool::KubeControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"),
            (Tool::Kubectl, "k8s.io/kubernetes/cmd/kubectl"),
            (Tool::E2eTest, "k8s.io/kubernetes/test/e2e"),
        ],
    },
];

/// Builds `missing` into `cache`.
pub(super) async fn build(missing: &[Tool], cache: &Path, progress: &mut Progress) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ");
    if find_program("go").is_none() {
        bail!(
            "{names} {KUBERNETES_VERSION} not found, and no Go to build them: install Go 1.26 or newer \
             (https://go.dev/dl, or your distribution's golang package), or put the programs on PATH or into a folder \
             named by KUBEBUILDER_ASSETS"
        );
    }
    let started = Instant::now();
    for module in &MODULES {
        for (tool, package) in module.packages.iter().filter(|(tool, _)| missing.contains(tool)) {
            build_one(module, *tool, package, cache, progress).await?;
        }
    }
    progress.finish(&format!("built {names} into {} in {} s", cache.display(), started.elapsed().as_secs()));
    Ok(())
}

async fn build_one(module: &Module, tool: Tool, package: &str, cache: &Path, progress: &mut Progress) -> Result<()> {
    let name = tool.name();
    let log = cache.join(format!(".{name}.log"));
    let output = File::create(&log).with_context(|| format!("create {}", log.display()))?;
    // Linked under another name first, so that a build cut short leaves no half program behind.
    let partial = cache.join(format!(".{name}.partial"));
    let (build, options): (_, &[&str]) =
        if tool == Tool::E2eTest { ("test", &["-c", "-vet=off"]) } else { ("build", &[]) };
    let child = Command::new("go")
        .args([build, "-C", module.dir])
        .args(options)
        .args(["-buildvcs=false", "-tags", module.tags, "-ldflags", module.flags, "-o"])
        .arg(&partial)
        .arg(package)
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("share the build log")?)
        .stderr(output)
        .kill_on_drop(true)
        .spawn()
        .context("start go build")?;
    wait(child, name, &log, progress).await?;
    std::fs::rename(&partial, cache.join(name)).with_context(|| format!("put {name} in place"))
}

async fn wait(mut child: Child, name: &str, log: &Path, progress: &mut Progress) -> Result<()> {
    let started = Instant::now();
    progress.show(&format!("building {name} (once; minutes on a cold cache)"));
    let status = loop {
        match timeout(Duration::from_millis(200), child.wait()).await {
            Ok(status) => break status.context("wait for go build")?,
            Err(_) => progress.show_live(&format!("building {name} (once): {} s", started.elapsed().as_secs())),
        }
    };
    if !status.success() {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        bail!("go build of {name} failed ({status}):\n{said}");
    }
    Ok(())
}
