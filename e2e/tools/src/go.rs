//! Builds the programs from the Go modules pinned in `e2e/tools/`.
//! Left out: cgo (the programs are static), and stripping symbols afterwards (the linker does it).

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::kubernetes::Kubernetes;
use crate::places::{built_dir, cache_dir, find_program};
use crate::progress::Progress;
use crate::tool::Tool;

/// One Go module: its programs share their compiled packages.
struct Module {
    dir: &'static str,
    /// Build tags, by which a program leaves parts of it out.
    tags: &'static str,
    flags: &'static str,
    /// How long its programs take to build, on two cores.
    takes: &'static str,
    /// The package of each program.
    packages: &'static [(Tool, &'static str)],
}

const CSI_SIDECARS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/csi-sidecars");
/// What the first of them compiles is most of what the others need.
const SIDECARS_TAKE: &str = "five minutes for the first, seconds for the others";

const MODULES: [Module; 13] = [
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/etcd"),
        tags: "",
        flags: "-s -w",
        takes: "half a minute",
        packages: &[(Tool::Etcd, "go.etcd.io/etcd/server/v3")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/kwok"),
        tags: "",
        flags: "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0",
        takes: "half a minute",
        packages: &[(Tool::Kwok, "sigs.k8s.io/kwok/cmd/kwok")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/helm"),
        tags: "",
        flags: "-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.2",
        takes: "a minute",
        packages: &[(Tool::Helm, "helm.sh/helm/v4/cmd/helm")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/cosign"),
        tags: "",
        flags: "-s -w",
        takes: "three minutes",
        packages: &[(Tool::Cosign, "github.com/sigstore/cosign/v3/cmd/cosign")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/metrics-server"),
        tags: "",
        flags: "-s -w -X k8s.io/client-go/pkg/version.gitVersion=v0.9.0",
        takes: "a minute",
        packages: &[(Tool::MetricsServer, "sigs.k8s.io/metrics-server/cmd/metrics-server")],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus"),
        // Ways to find what it scrapes, most of them with libraries of a cloud: all but the cluster's own.
        tags: "remove_all_sd enable_kubernetes_sd",
        flags: "-s -w -X github.com/prometheus/common/version.Version=3.16.0",
        takes: "two minutes",
        packages: &[
            (Tool::Prometheus, "github.com/prometheus/prometheus/cmd/prometheus"),
            (Tool::Promtool, "github.com/prometheus/prometheus/cmd/promtool"),
        ],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus-adapter"),
        tags: "",
        flags: "-s -w",
        takes: "a minute",
        packages: &[(Tool::PrometheusAdapter, "sigs.k8s.io/prometheus-adapter/cmd/adapter")],
    },
    // Each program of these has a version of its own in its flags.
    Module {
        dir: CSI_SIDECARS,
        tags: "",
        flags: "-s -w -X main.version=v4.12.0",
        takes: SIDECARS_TAKE,
        packages: &[(Tool::CsiAttacher, "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher")],
    },
    Module {
        dir: CSI_SIDECARS,
        tags: "",
        flags: "-s -w -X main.version=v6.3.0",
        takes: SIDECARS_TAKE,
        packages: &[(Tool::CsiProvisioner, "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner")],
    },
    Module {
        dir: CSI_SIDECARS,
        tags: "",
        flags: "-s -w -X main.version=v2.2.0",
        takes: SIDECARS_TAKE,
        packages: &[(Tool::CsiResizer, "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer")],
    },
    Module {
        dir: CSI_SIDECARS,
        tags: "",
        flags: "-s -w -X main.version=v8.6.0",
        takes: SIDECARS_TAKE,
        packages: &[
            (Tool::CsiSnapshotter, "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter"),
            (Tool::SnapshotController, "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller"),
        ],
    },
    Module {
        dir: Kubernetes::FOLLOWED.module,
        tags: "",
        flags: Kubernetes::FOLLOWED.flags,
        takes: "a minute, but more for its tests",
        packages: &[
            (Tool::Kubectl, "k8s.io/kubernetes/cmd/kubectl"),
            (Tool::E2eTest, "k8s.io/kubernetes/test/e2e"),
            (Tool::Ginkgo, "github.com/onsi/ginkgo/v2/ginkgo"),
        ],
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/cloud-manager"),
        tags: "",
        // A changed adapter gets another number, because a program of an accepted version is not built again.
        flags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3+cloud.1 \
                -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
        takes: "two minutes",
        packages: &[(Tool::CloudManager, "tools/cloud-manager")],
    },
];

/// The programs that have the chosen version of Kubernetes.
const fn of_cluster(kubernetes: Kubernetes) -> Module {
    Module {
        dir: kubernetes.module,
        tags: "",
        flags: kubernetes.flags,
        takes: "about three minutes",
        packages: &[
            (Tool::KubeApiserver, "k8s.io/kubernetes/cmd/kube-apiserver"),
            (Tool::KubeScheduler, "k8s.io/kubernetes/cmd/kube-scheduler"),
            (Tool::KubeControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ],
    }
}

/// Builds `missing` into the user's cache.
pub(crate) fn build(missing: &[Tool], kubernetes: Kubernetes, progress: &mut Progress) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let names = |tools: &[Tool]| tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ");
    if find_program("go").is_none() {
        bail!(
            "{} {} not found, and no Go to build them: install Go 1.26 or newer \
             (https://go.dev/dl, or your distribution's golang package), or put the programs on PATH or into a folder \
             named by KUBEBUILDER_ASSETS",
            names(missing),
            kubernetes.version
        );
    }
    let started = Instant::now();
    let modules = MODULES.iter().map(|module| (module, Kubernetes::FOLLOWED));
    for (module, of) in modules.chain([(&of_cluster(kubernetes), kubernetes)]) {
        let cache = built_dir(of)?;
        // The tests are a package that only `go test` builds.
        let (tests, programs): (Vec<Tool>, Vec<Tool>) = module
            .packages
            .iter()
            .map(|(tool, _)| *tool)
            .filter(|tool| missing.contains(tool))
            .partition(|tool| *tool == Tool::E2eTest);
        for tools in [programs, tests].iter().filter(|tools| !tools.is_empty()) {
            build_together(module, tools, &names(tools), &cache, progress)?;
        }
    }
    progress.finish(&format!(
        "built {} into {} in {} s",
        names(missing),
        cache_dir()?.display(),
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// Builds programs of one module with one command, which links one of them while it compiles another.
fn build_together(module: &Module, tools: &[Tool], names: &str, cache: &Path, progress: &mut Progress) -> Result<()> {
    std::fs::create_dir_all(cache).with_context(|| format!("create {}", cache.display()))?;
    let log = cache.join(".build.log");
    let output = File::create(&log).with_context(|| format!("create {}", log.display()))?;
    // Linked in another folder first, so that a build cut short leaves no half program behind.
    let partial = cache.join(".partial");
    std::fs::create_dir_all(&partial).with_context(|| format!("create {}", partial.display()))?;
    let (build, options, out): (_, &[&str], _) = match tools {
        [Tool::E2eTest] => ("test", &["-c", "-vet=off"], partial.join(Tool::E2eTest.name())),
        _ => ("build", &[], partial.clone()),
    };
    let packages = module.packages.iter().filter(|(tool, _)| tools.contains(tool)).map(|(_, package)| *package);
    let child = Command::new("go")
        .args([build, "-C", module.dir])
        .args(options)
        .args(["-buildvcs=false", "-tags", module.tags, "-ldflags", module.flags, "-o"])
        .arg(&out)
        .args(packages)
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("share the build log")?)
        .stderr(output)
        .spawn()
        .context("start go build")?;
    wait(child, module, names, &log, progress)?;
    for tool in tools {
        let built = match module.packages.iter().find(|(of, _)| of == tool) {
            Some((Tool::E2eTest, _)) | None => Tool::E2eTest.name(),
            Some((_, package)) => program_name(package),
        };
        std::fs::rename(partial.join(built), cache.join(tool.name()))
            .with_context(|| format!("put {} in place", tool.name()))?;
    }
    Ok(())
}

/// The name that Go gives the program of a package: its last element that is not a major version.
fn program_name(package: &str) -> &str {
    let is_version = |name: &str| name.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
    package.rsplit('/').find(|name| !is_version(name)).unwrap_or(package)
}

fn wait(mut child: Child, module: &Module, names: &str, log: &Path, progress: &mut Progress) -> Result<()> {
    let started = Instant::now();
    progress.show(&format!("building {names} from Go modules, once; {}", module.takes));
    let status = loop {
        if let Some(status) = child.try_wait().context("wait for go build")? {
            break status;
        }
        progress.show_live(&format!("building {names} (once; {}): {} s", module.takes, started.elapsed().as_secs()));
        thread::sleep(Duration::from_millis(200));
    };
    if !status.success() {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        bail!("go build of {names} failed ({status}):\n{said}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_the_names_that_go_gives_them() {
        assert_eq!(program_name("go.etcd.io/etcd/server/v3"), "server");
        assert_eq!(program_name("k8s.io/kubernetes/cmd/kubectl"), "kubectl");
    }
}
