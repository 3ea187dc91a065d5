//! `--controllers`: kube-controller-manager's controllers with their aliases, the cloud-controller-manager's own one, and the
//! choice among them.
//!
//! Upstream: `NewControllerDescriptors`, `cmd/kube-controller-manager/app/controller_descriptor.go`.

use super::gates::Gates;
use crate::{Operator, names};

struct Controller {
    name: &'static str,
    /// Its name before v1.28.
    alias: Option<&'static str>,
    runs: Runs,
    /// Feature gates that must be on.
    gates: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// `*` or its name.
    ByDefault,
    ByName,
    /// As by default, if there is a cloud provider. kube-controller-manager leaves it to the cloud-controller-manager.
    InCloud,
    /// The same, and also if there are address pools in place of a cloud.
    InCloudOrWithPools,
}

/// The flags without which some controllers do not run.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) has_provider: bool,
    pub(super) has_pools: bool,
}

enum Enabled {
    /// By its name or alias.
    ByName,
    /// By `*`.
    ByDefault,
    No,
}

const fn row(name: &'static str, alias: &'static str) -> Controller {
    Controller { alias: Some(alias), ..newer(name) }
}

/// A controller without an alias.
const fn newer(name: &'static str) -> Controller {
    Controller { name, alias: None, runs: Runs::ByDefault, gates: &[] }
}

impl Controller {
    const fn by_name(self) -> Self {
        Self { runs: Runs::ByName, ..self }
    }

    const fn in_cloud(self) -> Self {
        Self { runs: Runs::InCloud, ..self }
    }

    const fn in_cloud_or_with_pools(self) -> Self {
        Self { runs: Runs::InCloudOrWithPools, ..self }
    }

    const fn behind(self, gates: &'static [&'static str]) -> Self {
        Self { gates, ..self }
    }
}

/// All of v1.36, by name.
const CONTROLLERS: &[Controller] = &[
    row("bootstrap-signer-controller", "bootstrapsigner").by_name(),
    row("certificatesigningrequest-approving-controller", "csrapproving"),
    row("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    row("certificatesigningrequest-signing-controller", "csrsigning"),
    row("cloud-node-lifecycle-controller", "cloud-node-lifecycle").in_cloud(),
    row("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    row("cronjob-controller", "cronjob"),
    row("daemonset-controller", "daemonset"),
    row("deployment-controller", "deployment"),
    newer("device-taint-eviction-controller").behind(&["DynamicResourceAllocation", "DRADeviceTaints"]),
    row("disruption-controller", "disruption"),
    row("endpoints-controller", "endpoint"),
    row("endpointslice-controller", "endpointslice"),
    row("endpointslice-mirroring-controller", "endpointslicemirroring"),
    row("ephemeral-volume-controller", "ephemeral-volume"),
    row("garbage-collector-controller", "garbagecollector"),
    row("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling"),
    row("job-controller", "job"),
    newer("kube-apiserver-serving-clustertrustbundle-publisher-controller").behind(&["ClusterTrustBundle"]),
    row("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    row("namespace-controller", "namespace"),
    row("node-ipam-controller", "nodeipam"),
    row("node-lifecycle-controller", "nodelifecycle"),
    row("node-route-controller", "route").in_cloud(),
    row("persistentvolume-attach-detach-controller", "attachdetach"),
    row("persistentvolume-binder-controller", "persistentvolume-binder"),
    row("persistentvolume-expander-controller", "persistentvolume-expander"),
    row("persistentvolume-protection-controller", "pv-protection"),
    row("persistentvolumeclaim-protection-controller", "pvc-protection"),
    row("pod-garbage-collector-controller", "podgc"),
    newer("podcertificaterequest-cleaner-controller").behind(&["PodCertificateRequest"]),
    newer("podgroup-protection-controller").behind(&["GenericWorkload"]),
    row("replicaset-controller", "replicaset"),
    row("replicationcontroller-controller", "replicationcontroller"),
    row("resourceclaim-controller", "resource-claim-controller").behind(&["DynamicResourceAllocation"]),
    newer("resourcepoolstatusrequest-controller").behind(&["DRAResourcePoolStatus"]),
    row("resourcequota-controller", "resourcequota"),
    row("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    newer("selinux-warning-controller").by_name().behind(&["SELinuxChangePolicy"]),
    newer("service-cidr-controller").behind(&["MultiCIDRServiceAllocator"]),
    row("service-lb-controller", "service").in_cloud_or_with_pools(),
    row("serviceaccount-controller", "serviceaccount"),
    row("serviceaccount-token-controller", "serviceaccount-token"),
    row("statefulset-controller", "statefulset"),
    row("storage-version-migrator-controller", "svm").behind(&["StorageVersionMigrator"]),
    row("storageversion-garbage-collector-controller", "storage-version-gc")
        .behind(&["APIServerIdentity", "StorageVersionAPI"]),
    newer("taint-eviction-controller").behind(&["SeparateTaintEvictionController"]),
    row("token-cleaner-controller", "tokencleaner").by_name(),
    row("ttl-after-finished-controller", "ttl-after-finished"),
    row("ttl-controller", "ttl"),
    newer("validatingadmissionpolicy-status-controller"),
    newer("volumeattributesclass-protection-controller").behind(&["VolumeAttributesClass"]),
    row("cloud-node-controller", "cloud-node").in_cloud(),
];

pub(super) struct Chosen {
    /// The operators that run, in the order of upstream's names.
    pub(super) operators: Vec<&'static Operator>,
    /// The reasons why enabled controllers do not run.
    pub(super) notes: Vec<String>,
}

fn operator_of<'a>(controller: &Controller, operators: &'a [Operator]) -> Option<&'a Operator> {
    let stem = controller.name.strip_suffix("-controller")?;
    operators.iter().find(|operator| operator.name.strip_suffix("-operator") == Some(stem))
}

fn called(name: &str) -> Option<&'static Controller> {
    CONTROLLERS.iter().find(|controller| controller.name == name || controller.alias == Some(name))
}

pub(super) fn is_gate(gate: &str) -> bool {
    CONTROLLERS.iter().any(|controller| controller.gates.contains(&gate))
}

/// The names for `--help`: all, and those disabled by default.
pub(super) fn help() -> String {
    let names = |shown: &dyn Fn(&Controller) -> bool| {
        let names = CONTROLLERS.iter().filter(|controller| shown(controller)).map(|controller| controller.name);
        names.collect::<Vec<_>>().join(", ")
    };
    format!(
        "\nAll controllers: {}\nDisabled-by-default controllers: {}",
        names(&|_| true),
        names(&|controller| controller.runs == Runs::ByName),
    )
}

/// Chooses the operators that run, as kube-controller-manager chooses its controllers.
///
/// # Errors
/// A line for each unknown name.
///
/// Upstream: `IsControllerEnabled`, `k8s.io/controller-manager/app/helper.go`; `Validate`,
/// `k8s.io/controller-manager/options/generic.go`; `BuildController`,
/// `cmd/kube-controller-manager/app/controller_descriptor.go`.
pub(super) fn choose(
    asked: &[String],
    gates: &Gates,
    given: Given,
    operators: &'static [Operator],
) -> Result<Chosen, Vec<String>> {
    let asked: Vec<&str> = asked.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let wrong: Vec<String> = asked.iter().filter_map(|name| unknown(name)).collect();
    let (mut chosen, mut notes) = (Vec::new(), Vec::new());
    for controller in CONTROLLERS {
        let name = controller.name;
        let is_named = match enabled(controller, &asked) {
            Enabled::ByName => true,
            Enabled::ByDefault => false,
            Enabled::No => continue,
        };
        match skipped(controller, gates, given) {
            Some(why) => notes.extend(is_named.then(|| format!("{name} does not run: {why}"))),
            None => chosen.extend(operator_of(controller, operators)),
        }
    }
    if wrong.is_empty() { Ok(Chosen { operators: chosen, notes }) } else { Err(wrong) }
}

/// Whether the controller is enabled. The first mention decides.
fn enabled(controller: &Controller, asked: &[&str]) -> Enabled {
    for name in asked {
        let (name, enables) = name.strip_prefix('-').map_or((*name, true), |name| (name, false));
        if name == controller.name || Some(name) == controller.alias {
            return if enables { Enabled::ByName } else { Enabled::No };
        }
    }
    if asked.contains(&"*") && controller.runs != Runs::ByName { Enabled::ByDefault } else { Enabled::No }
}

/// The reason why the controller is skipped even if it is enabled.
fn skipped(controller: &Controller, gates: &Gates, given: Given) -> Option<String> {
    let Given { has_provider, has_pools } = given;
    match controller.runs {
        Runs::InCloud if !has_provider => return Some("--cloud-provider-endpoint is not given".to_owned()),
        Runs::InCloudOrWithPools if !has_provider && !has_pools => {
            return Some("neither --cloud-provider-endpoint nor --address-pools is given".to_owned());
        }
        Runs::ByDefault | Runs::ByName | Runs::InCloud | Runs::InCloudOrWithPools => {}
    }
    let off: Vec<&str> = controller.gates.iter().copied().filter(|gate| !gates.is_on(gate)).collect();
    (!off.is_empty()).then(|| format!("feature gate {} is off", off.join(" and ")))
}

/// The error for a name that is not a controller's.
fn unknown(asked: &str) -> Option<String> {
    let name = asked.strip_prefix('-').unwrap_or(asked);
    if asked == "*" || called(name).is_some() {
        return None;
    }
    let all = CONTROLLERS.iter().flat_map(|controller| std::iter::once(controller.name).chain(controller.alias));
    let hint = names::hint(name, all);
    Some(format!("--controllers: {name:?} is not in the list of known controllers{hint}"))
}
