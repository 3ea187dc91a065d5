//! Operators as processes: their permissions from the manifests, their own ServiceAccount's token, their own log.
//! Left out: containers and images, and the manifests' Deployments; a kind cluster tests those.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::StatusCode;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::apply::{apply, text};
use crate::cluster::flags::{Places, all_needed_flags, needed_flags, needs_cloud};
use crate::cluster::options::every_gate;
use crate::cluster::{Cluster, ControllerManager};
use crate::guard::Guard;
use crate::kubeconfig::{self, Credentials};
use crate::kubectl::kustomize;
use crate::ports::free_port;
use crate::process::{Process, Program, log_tail};
use crate::serving::{get, http_client, wait_ok};
use crate::usage::Usage;

/// Where operators live unless their manifests say otherwise.
const DEFAULT_NAMESPACE: &str = "kube-system";
/// Longer than any run.
const TOKEN_SECONDS: i64 = 24 * 3600;
/// How long an operator may take to end on SIGTERM.
const DEADLINE: Duration = Duration::from_secs(30);
/// The kinds that say what an operator may do.
const PERMISSION_KINDS: [&str; 8] = [
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// The program that has all operators in it: cargo puts the programs of a profile next to each other.
pub const ALL_IN_ONE: &str = "operators";

/// Every operator there is, by the names of the folders below `operators`.
pub fn all() -> Result<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../operators");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.context("list the operators")?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Upstream's name of the controller an operator replaces.
pub fn upstream_controller(operator: &str) -> String {
    format!("{}-controller", operator.strip_suffix("-operator").unwrap_or(operator))
}

/// Whether operators run in the form of one process: `E2E_ONE_PROCESS=1`.
pub fn is_one_process() -> bool {
    std::env::var_os("E2E_ONE_PROCESS").is_some_and(|value| !value.is_empty())
}

/// The arguments by which the process of all controllers runs one of them, beside such processes of others.
fn one_process(operator: &str) -> Vec<String> {
    vec![
        format!("--controllers={}", upstream_controller(operator)),
        "--use-service-account-credentials".to_owned(),
        format!("--leader-elect-resource-name={operator}-process"),
        every_gate(),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub namespace: String,
    pub service_account: String,
}

#[derive(Clone, Debug)]
pub struct OperatorSpec {
    /// Names its log and its kubeconfig; two replicas have two names.
    pub name: String,
    /// Which operator it is: the program's first argument. None: a process of several, which `flags` name.
    pub operator: Option<String>,
    pub program: PathBuf,
    /// Further flags; they come last.
    pub flags: Vec<String>,
    pub account: Installed,
    /// Where it finds the apiserver, such as a fault proxy's URL. None: at the apiserver itself.
    pub server: Option<String>,
    pub leader_elect: bool,
}

impl OperatorSpec {
    pub fn new(operator: &str, program: impl Into<PathBuf>, account: &Installed) -> Self {
        Self {
            name: operator.to_owned(),
            operator: Some(operator.to_owned()),
            program: program.into(),
            flags: Vec::new(),
            account: account.clone(),
            server: None,
            leader_elect: true,
        }
    }
}

impl Cluster {
    /// Applies the permissions in the kustomize folder `manifests`, and says whom they are for: one account.
    pub async fn install(&self, manifests: &Path) -> Result<Installed> {
        let mut accounts = self.install_accounts(manifests).await?;
        let count = accounts.len();
        match accounts.pop() {
            Some(account) if count == 1 => Ok(account),
            Some(_) | None => bail!("{} has {count} service accounts, not one", manifests.display()),
        }
    }

    /// Applies the permissions in the kustomize folder `manifests`, and says whom they are for.
    pub async fn install_accounts(&self, manifests: &Path) -> Result<Vec<Installed>> {
        let client = self.client().await?;
        let mut accounts = Vec::new();
        for object in kustomize(manifests).await? {
            let kind = text(&object, "/kind")?;
            if !PERMISSION_KINDS.contains(&kind) {
                continue;
            }
            if kind == "ServiceAccount" {
                accounts.push(installed(&object)?);
            }
            apply(&client, DEFAULT_NAMESPACE, &object).await?;
        }
        Ok(accounts)
    }

    /// A token of a service account, from the `TokenRequest` API.
    pub async fn token(&self, account: &Installed) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, &account.namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() }),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(&account.service_account, &PostParams::default(), &request)
            .await
            .with_context(|| format!("get a token of {}", account.service_account))?;
        answer.status.and_then(|status| status.token).context("a token request without a token")
    }

    /// Writes a kubeconfig for `account`, which reaches the apiserver at `server`.
    pub async fn write_kubeconfig(&self, name: &str, account: &Installed, server: &str) -> Result<PathBuf> {
        let path = self.run_dir()?.join(format!("{name}.kubeconfig"));
        let token = self.token(account).await?;
        kubeconfig::write(&path, server, self.pki()?.ca_pem(), &Credentials::Token(&token))?;
        Ok(path)
    }

    /// An account that may request tokens of all others and hold any Lease. A proxy of faults passes on tokens, but no
    /// certificates.
    async fn process_account(&self) -> Result<Installed> {
        let client = self.client().await?;
        let (name, namespace) = ("e2e-process", DEFAULT_NAMESPACE);
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        });
        for object in [account, binding] {
            apply(&client, namespace, &object).await?;
        }
        Ok(Installed { namespace: namespace.to_owned(), service_account: name.to_owned() })
    }

    /// Starts an operator; [`Operator::wait_ready`] waits for it.
    pub async fn start_operator(&self, spec: &OperatorSpec) -> Result<Operator> {
        let server = match &spec.server {
            Some(server) => server.clone(),
            None => self.server()?,
        };
        if needs_cloud(spec.operator.as_deref()) {
            self.cloud().await?;
        }
        let (port, places) = (free_port()?, Places { run: self.run_dir()?, pki: self.pki()?.folder() });
        let (account, form) = match &spec.operator {
            Some(operator) if is_one_process() => (self.process_account().await?, one_process(operator)),
            operator => (spec.account.clone(), operator.iter().cloned().collect()),
        };
        let kubeconfig = self.write_kubeconfig(&spec.name, &account, &server).await?;
        let needed: Vec<String> = match spec.operator.as_deref().map(facts::of) {
            Some(facts) => facts.into_iter().flat_map(|facts| needed_flags(facts, places)).collect(),
            None => all_needed_flags(places).collect(),
        };
        let program = Program::new(&spec.program, self.log_file(&spec.name)?)
            .args(form)
            .args([
                format!("--kubeconfig={}", kubeconfig.display()),
                format!("--leader-elect={}", spec.leader_elect),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
            ])
            .args(needed)
            .args(&spec.flags);
        let process = Process::start(self.guard()?, &program)?;
        Ok(Operator::started(&spec.name, port, Arc::clone(self.guard()?), program, process))
    }

    /// Starts a member of kube-controller-manager's election, as one of several control planes has it, and waits until it
    /// serves. A standby of upstream's has no other word for that than being healthy.
    pub async fn start_control_plane(&self, name: &str, of: &ControllerManager) -> Result<Operator> {
        let (program, port) = self.control_plane(name, of).await?;
        let process = Process::start(self.guard()?, &program)?;
        let mut member = Operator::started(name, port, Arc::clone(self.guard()?), program, process);
        member.wait("/healthz").await?;
        Ok(member)
    }
}

pub struct Operator {
    name: String,
    port: u16,
    guard: Arc<Guard>,
    program: Program,
    process: Process,
}

impl Operator {
    /// An operator that `program` has started, which serves at `port`.
    pub(crate) fn started(name: &str, port: u16, guard: Arc<Guard>, program: Program, process: Process) -> Self {
        Self { name: name.to_owned(), port, guard, program, process }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub fn usage(&self) -> Result<Usage> {
        self.process.usage()
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        log_tail(self.process.log(), lines)
    }

    pub fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.process.log()).with_context(|| format!("read the log of {}", self.name))
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// SIGTERM; not ending in time is an error.
    pub async fn terminate(&mut self) -> Result<()> {
        self.process.terminate(DEADLINE).await?;
        Ok(())
    }

    /// Starts it again as it was; what still runs is killed first.
    pub fn restart(&mut self) -> Result<()> {
        self.process.kill();
        self.process = Process::start(&self.guard, &self.program)?;
        Ok(())
    }

    /// Waits until `/readyz` says so.
    pub async fn wait_ready(&mut self) -> Result<()> {
        self.wait("/readyz").await
    }

    async fn wait(&mut self, path: &str) -> Result<()> {
        let (name, log) = (self.name.clone(), self.process.log().to_owned());
        wait_ok(self.port, path, || self.process.check_running())
            .await
            .with_context(|| format!("{name} does not answer {path}; its log ends:\n{}", log_tail(&log, 15)))
    }

    /// Asks it for `path` (`/metrics`, `/debug/…`), with a token where the path wants one.
    pub async fn get(&self, path: &str, token: Option<&str>) -> Result<(StatusCode, String)> {
        get(&http_client(self.port, token)?, path).await
    }
}

fn installed(service_account: &Value) -> Result<Installed> {
    Ok(Installed {
        namespace: text(service_account, "/metadata/namespace").unwrap_or(DEFAULT_NAMESPACE).to_owned(),
        service_account: text(service_account, "/metadata/name")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_named_after_controllers() {
        assert_eq!(upstream_controller("deployment-operator"), "deployment-controller");
    }
}
