//! The parts of a local cluster and their command lines.
//! Left out: leader election of kube-scheduler (it runs once), and TLS to etcd (it listens on 127.0.0.1 for one run).

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use tools::{Tool, Tools};

use super::flags::{Places, all_needed_flags, upstreams_flags, upstreams_flags_of_clouds};
use super::options::{ClusterOptions, ControllerManager, Manager, Source};
use super::run_dir::RunDir;
use crate::kubeconfig::{self, Credentials};
use crate::pki::Pki;
use crate::ports;
use crate::process::Program;

/// The configuration of kwok: how it runs, and the stages of nodes and pods.
const KWOK_CONFIG: [(&str, &str); 3] = [
    ("config.yaml", include_str!("../../kwok/config.yaml")),
    ("node.yaml", include_str!("../../kwok/node.yaml")),
    ("pod.yaml", include_str!("../../kwok/pod.yaml")),
];

/// How long a node's Lease holds, as the configuration has it.
const LEASE_OF_A_KUBELET: &str = "nodeLeaseDurationSeconds: 40";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    // In the order in which they are stopped.
    Kwok,
    ControllerManager,
    Scheduler,
    Apiserver,
    Etcd,
}

impl Part {
    pub const ALL: [Self; 5] = [Self::Kwok, Self::ControllerManager, Self::Scheduler, Self::Apiserver, Self::Etcd];

    fn tool(self) -> Tool {
        match self {
            Self::Kwok => Tool::Kwok,
            Self::ControllerManager => Tool::KubeControllerManager,
            Self::Scheduler => Tool::KubeScheduler,
            Self::Apiserver => Tool::KubeApiserver,
            Self::Etcd => Tool::Etcd,
        }
    }

    pub fn name(self) -> &'static str {
        self.tool().name()
    }
}

pub(super) struct Parts {
    tools: Mutex<Tools>,
    dir: PathBuf,
    logs: Vec<(Part, PathBuf)>,
    etcd_data: PathBuf,
    pki: PathBuf,
    ports: Ports,
    audit_log: Option<PathBuf>,
    apiserver_flags: Mutex<Vec<String>>,
    controller_manager: Mutex<ControllerManager>,
}

struct Ports {
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
    scheduler: u16,
    controller_manager: u16,
}

impl Parts {
    pub(super) fn new(tools: Tools, run_dir: &RunDir, pki: &Pki, options: &ClusterOptions) -> Result<Self> {
        let [etcd, etcd_peer, apiserver, scheduler, controller_manager] = ports::free()?;
        let dir = run_dir.path();
        let parts = Self {
            tools: Mutex::new(tools),
            dir: dir.to_owned(),
            logs: Part::ALL.into_iter().map(|part| (part, run_dir.log(part.name()))).collect(),
            etcd_data: run_dir.data(),
            pki: pki.file(""),
            ports: Ports { etcd, etcd_peer, apiserver, scheduler, controller_manager },
            audit_log: options.audit.then(|| dir.join("audit.log")),
            apiserver_flags: Mutex::new(options.apiserver_flags.clone()),
            controller_manager: Mutex::new(ControllerManager::all()),
        };
        parts.write_kubeconfigs(pki)?;
        write(&dir.join("audit-policy.yaml"), options.audit_policy)?;
        let lease = format!("nodeLeaseDurationSeconds: {}", options.node_lease);
        for (name, text) in KWOK_CONFIG {
            write(&dir.join(format!("kwok-{name}")), &text.replace(LEASE_OF_A_KUBELET, &lease))?;
        }
        Ok(parts)
    }

    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.apiserver)
    }

    pub(super) fn controller_manager_port(&self) -> u16 {
        self.ports.controller_manager
    }

    pub(super) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.dir.join(format!("{user}.kubeconfig"))
    }

    pub(super) fn audit_log(&self) -> Option<&Path> {
        self.audit_log.as_deref()
    }

    pub(super) fn set_apiserver_flags(&self, flags: Vec<String>) {
        *self.apiserver_flags.lock().unwrap_or_else(PoisonError::into_inner) = flags;
    }

    /// Programs of parts that not every cluster has.
    pub(super) fn add_tools(&self, tools: Tools) {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).add(tools);
    }

    pub(super) fn set_controller_manager(&self, controller_manager: ControllerManager) {
        *self.lock_controller_manager() = controller_manager;
    }

    /// The program of `part`, with its flags.
    pub(super) fn program(&self, part: Part) -> Program {
        let log = self.logs.iter().find(|(of, _)| *of == part).map(|(_, log)| log.clone()).unwrap_or_default();
        let args = match part {
            Part::Etcd => self.etcd(),
            Part::Apiserver => self.apiserver(),
            Part::Scheduler => self.scheduler(),
            Part::ControllerManager => {
                self.controller_manager(&self.lock_controller_manager(), self.ports.controller_manager)
            }
            Part::Kwok => self.kwok(),
        };
        let path = match part {
            Part::ControllerManager => self.manager(&self.lock_controller_manager().program),
            Part::Etcd | Part::Apiserver | Part::Scheduler | Part::Kwok => self.tool(part.tool()),
        };
        Program::new(path, log).args(args)
    }

    fn manager(&self, program: &Manager) -> PathBuf {
        match program.source() {
            Source::Tool(tool) => self.tool(tool),
            Source::Path(path) => path.to_owned(),
        }
    }

    fn tool(&self, tool: Tool) -> PathBuf {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).path(tool).to_owned()
    }

    fn lock_controller_manager(&self) -> MutexGuard<'_, ControllerManager> {
        self.controller_manager.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program of all operators stands for kube-controller-manager.
    pub(super) fn runs_one_process(&self) -> bool {
        matches!(self.lock_controller_manager().program, Manager::OneProcess(_))
    }

    fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        vec![
            "--name=e2e".to_owned(),
            flag("data-dir", self.etcd_data.display()),
            flag("listen-client-urls", &client),
            flag("advertise-client-urls", &client),
            flag("listen-peer-urls", &peer),
            flag("initial-advertise-peer-urls", &peer),
            flag("initial-cluster", format!("e2e={peer}")),
            // The data is worth nothing once the process is gone.
            "--unsafe-no-fsync".to_owned(),
            // 100,000 pods with their last changes need more than the 2 GiB that it allows itself.
            "--quota-backend-bytes=8589934592".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn apiserver(&self) -> Vec<String> {
        let mut args = vec![
            flag("etcd-servers", format!("http://127.0.0.1:{}", self.ports.etcd)),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // An Endpoints object may not hold a loopback address.
            "--endpoint-reconciler-type=none".to_owned(),
            flag("secure-port", self.ports.apiserver),
            flag("tls-cert-file", self.pki.join("apiserver.crt").display()),
            flag("tls-private-key-file", self.pki.join("apiserver.key").display()),
            flag("client-ca-file", self.pki.join("ca.crt").display()),
            flag("service-account-key-file", self.pki.join("sa.pub").display()),
            flag("service-account-signing-key-file", self.pki.join("sa.key").display()),
            // By these, kube-scheduler and kube-controller-manager know whom to believe; no front proxy runs.
            flag("requestheader-client-ca-file", self.pki.join("ca.crt").display()),
            "--requestheader-allowed-names=front-proxy".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if let Some(log) = &self.audit_log {
            args.push(flag("audit-policy-file", self.dir.join("audit-policy.yaml").display()));
            args.push(flag("audit-log-path", log.display()));
            // In megabytes: a log that begins anew at 100, as it does by default, would lose requests.
            args.push(flag("audit-log-maxsize", 10_000));
        }
        args.extend(self.apiserver_flags.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        args
    }

    fn scheduler(&self) -> Vec<String> {
        self.client_flags("kube-scheduler", self.ports.scheduler)
    }

    fn controller_manager(&self, of: &ControllerManager, port: u16) -> Vec<String> {
        let mut args = self.client_flags("kube-controller-manager", port);
        args.extend([flag("controllers", &of.controllers), "--use-service-account-credentials".to_owned()]);
        let places = Places { run: &self.dir, pki: &self.pki };
        match of.program {
            Manager::Upstreams => args.extend(upstreams_flags(places)),
            Manager::UpstreamsOfClouds => args.extend(upstreams_flags_of_clouds(places)),
            Manager::OneProcess(_) => args.extend(all_needed_flags(places)),
        }
        args.extend(of.flags.iter().cloned());
        args
    }

    /// The program of one of several members of kube-controller-manager's election.
    pub(super) fn control_plane(&self, of: &ControllerManager, port: u16, log: PathBuf) -> Program {
        Program::new(self.manager(&of.program), log)
            .args(self.controller_manager(of, port))
            .args(MEMBER.map(str::to_owned))
    }

    /// The flags that kube-scheduler and kube-controller-manager have in common. The limits are beyond this machine's
    /// power: a throttled client would be measured instead of the controllers.
    fn client_flags(&self, user: &str, port: u16) -> Vec<String> {
        let kubeconfig = self.kubeconfig(user);
        vec![
            flag("kubeconfig", kubeconfig.display()),
            flag("authentication-kubeconfig", kubeconfig.display()),
            flag("authorization-kubeconfig", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=2000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            flag("secure-port", port),
        ]
    }

    fn kwok(&self) -> Vec<String> {
        let mut args = vec![flag("kubeconfig", self.kubeconfig("kwok").display())];
        args.extend(KWOK_CONFIG.map(|(name, _)| flag("config", self.dir.join(format!("kwok-{name}")).display())));
        args
    }

    fn write_kubeconfigs(&self, pki: &Pki) -> Result<()> {
        let users = [
            ("admin", "admin", Some("system:masters")),
            ("kwok", "kwok", Some("system:masters")),
            ("kube-scheduler", "system:kube-scheduler", None),
            ("kube-controller-manager", "system:kube-controller-manager", None),
        ];
        for (file, user, group) in users {
            let identity = pki.client(user, group)?;
            let credentials = Credentials::Certificate(&identity);
            kubeconfig::write(&self.kubeconfig(file), &self.server(), pki.ca_pem(), &credentials)?;
        }
        Ok(())
    }
}

/// Flags of a member of the election: a lost Lease is given up sooner than after the usual 15 seconds.
const MEMBER: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
