//! Prometheus itself beside a local cluster, and promtool.
//! Left out: finding what to scrape. A real node's Prometheus does that (`scripts/prometheus.sh`).

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::process::Command;
use tools::Tool;

use crate::cluster::Cluster;
use crate::dashboard::Time;
use crate::kubectl::printed;
use crate::operator::Operator;
use crate::ports::free_port;
use crate::process::{Process, Program};

/// A running Prometheus; killed when dropped.
pub struct Prometheus {
    url: String,
    _process: Process,
}

impl Cluster {
    /// Starts a Prometheus that scrapes these operators each second with the token, and evaluates these groups of rules.
    pub fn start_prometheus(&self, operators: &[Operator], token: &str, groups: &Value) -> Result<Prometheus> {
        let folder = self.run_dir()?.join("prometheus");
        std::fs::create_dir_all(&folder).context("make a folder for Prometheus")?;
        // JSON is YAML.
        let write = |name: &str, content: &Value| {
            let path = folder.join(name);
            std::fs::write(&path, content.to_string()).with_context(|| format!("write {}", path.display()))?;
            Ok::<_, anyhow::Error>(path)
        };
        let rules = write("rules.json", &json!({ "groups": groups }))?;
        let scrape = |operator: &Operator| {
            json!({
                "job_name": operator.name(),
                "scheme": "https",
                "authorization": {"credentials": token},
                "tls_config": {"insecure_skip_verify": true},
                "static_configs": [{"targets": [format!("127.0.0.1:{}", operator.port())]}],
            })
        };
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules],
            "scrape_configs": operators.iter().map(scrape).collect::<Vec<Value>>(),
        });
        let config = write("prometheus.json", &config)?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let path = tools::find(Tool::Prometheus)
            .context("prometheus is neither on PATH nor built: make upstream TOOL=prometheus")?;
        let program = Program::new(path, self.log_file("prometheus")?).args([
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address={address}"),
        ]);
        Ok(Prometheus { url: format!("http://{address}"), _process: Process::start(self.guard()?, &program)? })
    }
}

impl Prometheus {
    /// The values of an expression now, with their labels.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>> {
        answer(&promtool(["query", "--format=json", "instant", &self.url, expression]).await?)
    }

    /// The values of an expression over time.
    pub async fn query_range(&self, expression: &str, Time { start, end, step }: Time) -> Result<Vec<Value>> {
        let time = [format!("--start={start}"), format!("--end={end}"), format!("--step={step}s")];
        let args = ["query", "--format=json", "range", &self.url, expression].map(str::to_owned);
        answer(&promtool(args.into_iter().chain(time)).await?)
    }
}

fn answer(printed: &str) -> Result<Vec<Value>> {
    serde_json::from_str(printed).with_context(|| format!("read the answer of promtool: {printed}"))
}

/// Runs promtool; what it prints, or an error with what it complains about.
pub async fn promtool<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Result<String> {
    let path =
        tools::find(Tool::Promtool).context("promtool is neither on PATH nor built: make upstream TOOL=promtool")?;
    let mut command = Command::new(path);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    printed("promtool", command).await
}

/// Writes rules and checks them with promtool.
pub async fn check_rules(path: &Path, groups: &Value) -> Result<()> {
    std::fs::write(path, json!({ "groups": groups }).to_string()).context("write rules")?;
    promtool([OsStr::new("check"), OsStr::new("rules"), path.as_os_str()]).await.map(drop)
}
