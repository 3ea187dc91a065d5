//! Builds the programs from the Go modules pinned in `e2e/tools/`.
//! Left out: cgo (the programs are static), and stripping symbols afterwards (the linker does it).

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::{KUBERNETES_VERSION, Tool, find_program};
use crate::folder;
use crate::progress::Progress;

/// One Go module: its programs share their compiled packages.
struct Module {
    dir: &'static str,
    /// Build tags, by which a program leaves parts of it out.
    tags: &'static str,
    flags: &'static str,
    /// The package of each program.
    packages: &'static [(Tool, &'static str)],
    mend: Option<Mend>,
}

/// A fault of a release, mended in a copy of the module that has it.
struct Mend {
    module: &'static str,
    file: &'static str,
    fault: &'static str,
    instead: &'static str,
}

/// Before every watch, kwok forgets how far it has come. The apiserver cuts those that are slow, and then sent it all pods
/// once more: thousands within seconds, which made it slower still, and it wrote statuses that it had written already.
const KWOK_FORGETS: Mend = Mend {
    module: "sigs.k8s.io/kwok",
    file: "pkg/utils/informer/event.go",
    fault: "if !o.EnableListPager || o.EnableStreamWatch {",
    instead: "if opts.ResourceVersion == \"\" && (!o.EnableListPager || o.EnableStreamWatch) {",
};

const MODULES: [Module; 6] = [
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/etcd"),
        tags: "",
        flags: "-s -w",
        packages: &[(Tool::Etcd, "go.etcd.io/etcd/server/v3")],
        mend: None,
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/kwok"),
        tags: "",
        flags: concat!("-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=", kwok_version!()),
        packages: &[(Tool::Kwok, "sigs.k8s.io/kwok/cmd/kwok")],
        mend: Some(KWOK_FORGETS),
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/metrics-server"),
        tags: "",
        flags: "-s -w -X k8s.io/client-go/pkg/version.gitVersion=v0.9.0",
        packages: &[(Tool::MetricsServer, "sigs.k8s.io/metrics-server/cmd/metrics-server")],
        mend: None,
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/prometheus"),
        // Ways to find what it scrapes, most of them with libraries of a cloud: all but the cluster's own.
        tags: "remove_all_sd enable_kubernetes_sd",
        flags: "-s -w -X github.com/prometheus/common/version.Version=3.16.0",
        packages: &[(Tool::Prometheus, "github.com/prometheus/prometheus/cmd/prometheus")],
        mend: None,
    },
    Module {
        dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tools/prometheus-adapter"),
        tags: "",
        flags: "-s -w",
        packages: &[(Tool::PrometheusAdapter, "sigs.k8s.io/prometheus-adapter/cmd/adapter")],
        mend: None,
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
        mend: None,
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
    let mended = match &module.mend {
        Some(mend) => Some(mended(module, mend, cache).await.with_context(|| format!("mend {name}"))?),
        None => None,
    };
    let child = Command::new("go")
        .args([build, "-C", module.dir])
        .args(options)
        .args(mended.iter().flat_map(|modules| [OsStr::new("-modfile"), modules.as_os_str()]))
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

/// Makes a mended copy of the release, and a `go.mod` beside it that takes the copy: a file in Go's own cache cannot be
/// replaced.
async fn mended(module: &Module, mend: &Mend, cache: &Path) -> Result<PathBuf> {
    let listed = go(&["mod", "download", "-C", module.dir, "-json", mend.module]).await?;
    let Downloaded { dir } = serde_json::from_str(&listed).context("read what go mod download says")?;
    let copy = cache.join(".mended");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).with_context(|| format!("remove {}", copy.display()))?;
    }
    folder::copy(&dir, &copy)?;
    let file = copy.join(mend.file);
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    ensure!(text.matches(mend.fault).count() == 1, "{} is not what it was", file.display());
    // It is read-only, as all files in Go's own cache.
    std::fs::remove_file(&file).with_context(|| format!("remove {}", file.display()))?;
    std::fs::write(&file, text.replacen(mend.fault, mend.instead, 1))
        .with_context(|| format!("write {}", file.display()))?;

    let (pinned, modules) = (Path::new(module.dir), cache.join(".mended.mod"));
    let text = std::fs::read_to_string(pinned.join("go.mod")).context("read go.mod")?;
    std::fs::write(&modules, format!("{text}\nreplace {} => {}\n", mend.module, copy.display()))
        .with_context(|| format!("write {}", modules.display()))?;
    std::fs::copy(pinned.join("go.sum"), modules.with_extension("sum")).context("copy go.sum")?;
    Ok(modules)
}

/// What `go mod download -json` says of a module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
}

async fn go(args: &[&str]) -> Result<String> {
    let output = Command::new("go").args(args).stdin(Stdio::null()).output().await.context("start go")?;
    ensure!(output.status.success(), "go {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).with_context(|| format!("read what go {} says", args.join(" ")))
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
