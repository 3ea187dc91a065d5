//! Operators as `scripts/static-pods.sh` lays them down for a kubelet: each with a client certificate of its own, and with
//! the arguments that its pod has.
//! Left out: the pods themselves. `scripts/cold-cluster.sh` starts them on a real node; here each is a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustix::process::getuid;
use serde_json::Value;

use crate::apply::{documents, text};
use crate::cluster::Cluster;
use crate::kubectl::run_script;
use crate::operator::Operator;
use crate::ports::free_port;
use crate::process::{Process, Program};

pub const SCRIPT: &str = "static-pods.sh";
const MOUNTED: &str = "/etc/kubernetes/operator";
const PORT: &str = "--secure-port=";

pub struct StaticPods {
    folder: PathBuf,
}

impl StaticPods {
    pub fn accounts(&self) -> PathBuf {
        self.folder.join("accounts.yaml")
    }

    pub fn pods(&self) -> Result<Vec<Value>> {
        let folder = self.folder.join("manifests");
        let entries = std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().context("list the pods")?;
        paths.sort();
        let mut pods = Vec::new();
        for path in paths {
            let read = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            pods.append(&mut documents(&read)?);
        }
        Ok(pods)
    }
}

impl Cluster {
    /// Has the script lay down the operators that a cold cluster needs, with these arguments besides.
    pub async fn lay_down_static_pods(&self, args: &[&str]) -> Result<StaticPods> {
        let folder = self.run_dir()?.join("static-pods");
        let options = [
            ("server", self.server()?),
            ("out", folder.display().to_string()),
            ("pki", self.pki()?.folder().display().to_string()),
            ("uid", getuid().as_raw().to_string()),
        ];
        let options = options.map(|(name, value)| format!("--{name}={value}"));
        let args = options.into_iter().chain(args.iter().map(|arg| (*arg).to_owned()));
        let (succeeded, printed) = run_script(SCRIPT, args, None).await?;
        ensure!(succeeded, "{}", printed.trim());
        Ok(StaticPods { folder })
    }

    /// Starts what each pod would start, with the files that it would mount; each serves at a port that is free here.
    pub async fn start_static_pods(&self, program: &Path, laid_down: &StaticPods) -> Result<Vec<Operator>> {
        let mut operators = Vec::new();
        for pod in laid_down.pods()? {
            let name = text(&pod, "/metadata/name")?;
            let files = text(&pod, "/spec/volumes/0/hostPath/path")?;
            let port = free_port()?;
            let args =
                pod.pointer("/spec/containers/0/args").and_then(Value::as_array).context("a pod without args")?;
            let args = args.iter().filter_map(Value::as_str).map(|arg| match arg.strip_prefix(PORT) {
                Some(_) => format!("{PORT}{port}"),
                None => arg.replace(MOUNTED, files),
            });
            let program = Program::new(program, self.log_file(name)?).args(args);
            let process = Process::start(self.guard()?, &program)?;
            operators.push(Operator::started(name, port, Arc::clone(self.guard()?), program, process));
        }
        for operator in &mut operators {
            operator.wait_ready().await?;
        }
        Ok(operators)
    }
}
