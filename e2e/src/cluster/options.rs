//! The size and the programs of a local cluster.

use std::iter;
use std::path::{Path, PathBuf};

use tools::{Tool, is_newer_than_followed};

use super::flags::{CLOUD_ENDPOINT, UPSTREAMS_CLOUD_ENDPOINT, of_clouds};

const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
";

/// Off by default in kube-controller-manager.
const TURNED_ON: [&str; 3] = ["bootstrap-signer-controller", "selinux-warning-controller", "token-cleaner-controller"];

/// Upstream's cloud-controller-manager alone has it; kube-controller-manager refuses a name that it does not know.
const IN_CLOUD_ALONE: &str = "cloud-node-controller";

/// Whether kube-controller-manager knows a controller; one of a newer version than the operators knows none of a cloud.
fn knows(controller: &str, is_newer: bool) -> bool {
    controller != IN_CLOUD_ALONE && (!is_newer || !of_clouds().any(|facts| facts.names.controller == controller))
}

/// The version in which the chosen apiserver serves PodGroups, and upstream's controllers of that version read them.
pub fn pod_group_version() -> &'static str {
    if is_newer_than_followed() { "v1beta1" } else { "v1alpha2" }
}

/// Takes the taint away that every new node has.
const NODE_LIFECYCLE: &str = "node-lifecycle-controller";

/// The gates of kinds that are off by default, for kube-apiserver and for kube-controller-manager.
const GATES: [&str; 6] = [
    "ClusterTrustBundle",
    "DRADeviceTaintRules",
    "DRAResourcePoolStatus",
    "GenericWorkload",
    "StorageVersionAPI",
    "StorageVersionMigrator",
];
/// The kinds themselves, which kube-apiserver serves only if it is told so besides: see [`GATES`]. PodGroups are in a group version of their
/// own in each version of Kubernetes.
const GATED: [&str; 5] = [
    "certificates.k8s.io/v1beta1/clustertrustbundles",
    "internal.apiserver.k8s.io/v1alpha1",
    "resource.k8s.io/v1alpha3",
    "resource.k8s.io/v1beta2/devicetaintrules",
    "storagemigration.k8s.io/v1beta1",
];

/// What runs as kube-controller-manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manager {
    Upstreams,
    /// Upstream's controllers of clouds, which work with the cluster's cloud.
    UpstreamsOfClouds,
    /// The program of all operators, which takes the same flags and runs all controllers in one process.
    OneProcess(PathBuf),
}

/// Where the program of a [`Manager`] comes from.
pub(super) enum Source<'a> {
    Tool(Tool),
    Path(&'a Path),
}

impl Manager {
    pub(super) fn source(&self) -> Source<'_> {
        match self {
            Self::Upstreams => Source::Tool(Tool::KubeControllerManager),
            Self::UpstreamsOfClouds => Source::Tool(Tool::CloudManager),
            Self::OneProcess(program) => Source::Path(program),
        }
    }

    /// The flag with the endpoint of a cloud, if it works with one.
    pub fn cloud_endpoint(&self) -> Option<&'static str> {
        match self {
            Self::Upstreams => None,
            Self::UpstreamsOfClouds => Some(UPSTREAMS_CLOUD_ENDPOINT),
            Self::OneProcess(_) => Some(CLOUD_ENDPOINT),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerManager {
    pub program: Manager,
    /// The value of `--controllers`.
    pub controllers: String,
    /// Further flags; they win over ours.
    pub flags: Vec<String>,
}

impl ControllerManager {
    pub fn all() -> Self {
        Self::without::<&str>([])
    }

    /// All but the named ones (`deployment-controller`).
    pub fn without<N: AsRef<str>>(controllers: impl IntoIterator<Item = N>) -> Self {
        let names = controllers.into_iter().map(|name| name.as_ref().to_owned());
        let off: Vec<String> = names.filter(|name| knows(name, is_newer_than_followed())).collect();
        // Of several words about one controller the first counts.
        let on = TURNED_ON.iter().filter(|name| !off.iter().any(|off| off == *name)).map(|name| (*name).to_owned());
        let words = iter::once("*".to_owned()).chain(on).chain(off.iter().map(|name| format!("-{name}")));
        Self { program: Manager::Upstreams, controllers: words.collect::<Vec<String>>().join(","), flags: Vec::new() }
    }

    /// Upstream's controllers of clouds and no others.
    pub fn of_clouds() -> Self {
        let names: Vec<&str> = of_clouds().map(|facts| facts.names.controller).collect();
        Self { program: Manager::UpstreamsOfClouds, controllers: names.join(","), flags: Vec::new() }
    }

    /// `program` in the place of upstream's, with the same controllers. It elects a leader, because the plugin asks the
    /// holder of a Lease.
    pub fn one_process(program: PathBuf) -> Self {
        Self { program: Manager::OneProcess(program), flags: vec!["--leader-elect=true".to_owned()], ..Self::all() }
    }

    /// With the controllers of the kinds that are off by default and that [`ClusterOptions::with_gated_kinds`] turns on.
    #[must_use]
    pub fn with_gated_kinds(mut self) -> Self {
        self.flags.push(turned_on("--feature-gates", &GATES));
        self
    }

    /// With the controllers whose features are off by default, too.
    #[must_use]
    pub fn with_every_gate(mut self) -> Self {
        self.flags.push(every_gate());
        self
    }

    /// Of several words about one controller the first counts.
    fn runs(&self, controller: &str) -> bool {
        let mut words = self.controllers.split(',');
        let own = words.clone().find(|word| word.strip_prefix('-').unwrap_or(word) == controller);
        // The word for all comes last, wherever it stands.
        own.or_else(|| words.find(|word| *word == "*")).is_some_and(|word| !word.starts_with('-'))
    }
}

/// The size and the programs of a local cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// How many nodes kwok plays.
    pub nodes: u32,
    /// In how many zones these are, in turn.
    pub zones: u32,
    /// For how many seconds a node's Lease holds, which kwok renews four times as often.
    pub node_lease: u32,
    /// Whether node-lifecycle-operator will be at work: it takes the taint away that every new node has.
    pub has_node_lifecycle: bool,
    /// None, unless said otherwise: the operators do its work.
    pub controller_manager: Option<ControllerManager>,
    /// Further flags of kube-apiserver, such as `--feature-gates=…`; they win over ours.
    pub apiserver_flags: Vec<String>,
    /// Whether every request is written into [`audit_log`](super::Cluster::audit_log).
    pub audit: bool,
    /// The policy of the audit log; by default one event of each request with its metadata, once it has been answered.
    pub audit_policy: &'static str,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            nodes: 5,
            zones: 3,
            node_lease: 40,
            has_node_lifecycle: false,
            controller_manager: None,
            apiserver_flags: Vec::new(),
            audit: false,
            audit_policy: AUDIT_POLICY,
        }
    }
}

impl ClusterOptions {
    /// Whether somebody takes the taint away that every new node has, at the latest when the operators are at work.
    pub(super) fn is_untainted(&self) -> bool {
        self.has_node_lifecycle || self.controller_manager.as_ref().is_some_and(|one| one.runs(NODE_LIFECYCLE))
    }

    /// With every controller of kube-controller-manager that a cluster of kubeadm has.
    pub fn with_controller_manager() -> Self {
        Self { controller_manager: Some(ControllerManager::all()), ..Self::default() }
    }

    /// The same with the kinds that are off by default and that operators act on: kube-apiserver serves them, and
    /// kube-controller-manager, if there is one from the start, runs their controllers.
    #[must_use]
    pub fn with_gated_kinds(mut self) -> Self {
        let gates = turned_on("--feature-gates", &GATES);
        let pod_groups = format!("scheduling.k8s.io/{}", pod_group_version());
        self.apiserver_flags.extend([gates, turned_on("--runtime-config", &[&GATED[..], &[&pod_groups]].concat())]);
        self.controller_manager = self.controller_manager.map(ControllerManager::with_gated_kinds);
        self
    }
}

/// The flag that turns on every feature without which the one process leaves a controller out.
pub(crate) fn every_gate() -> String {
    turned_on("--feature-gates", &[&GATES[..], &["PodCertificateRequest"]].concat())
}

/// `--flag=a=true,b=true`.
fn turned_on(flag: &str, names: &[&str]) -> String {
    let pairs: Vec<String> = names.iter().map(|name| format!("{name}=true")).collect();
    format!("{flag}={}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_names_are_turned_on_by_one_flag() {
        assert_eq!(turned_on("--runtime-config", &["a/v1", "b/v1"]), "--runtime-config=a/v1=true,b/v1=true");
    }

    #[test]
    fn controllers_of_clouds_are_named_where_they_are_known() {
        for (controller, known) in
            [("job-controller", [true, true]), ("service-lb-controller", [true, false]), (IN_CLOUD_ALONE, [false; 2])]
        {
            assert_eq!([false, true].map(|is_newer| knows(controller, is_newer)), known, "{controller}");
        }
    }

    #[test]
    fn a_controller_is_named_once() {
        let words = |names: &[&str]| ControllerManager::without(names).controllers;
        assert_eq!(
            ControllerManager::all().controllers,
            "*,bootstrap-signer-controller,selinux-warning-controller,token-cleaner-controller"
        );
        assert_eq!(
            words(&["token-cleaner-controller", IN_CLOUD_ALONE, "job-controller"]),
            "*,bootstrap-signer-controller,selinux-warning-controller,-token-cleaner-controller,-job-controller"
        );
    }
}
