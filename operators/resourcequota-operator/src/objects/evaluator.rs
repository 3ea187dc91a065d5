//! The kinds that quotas count, and which of them the name of a limit is about.
//!
//! Left out: whether such a kind is served, which only the apiserver knows.
//!
//! Upstream: `MatchingResources` of each evaluator, `pkg/quota/v1/evaluator/core`.

use std::fmt;

use shared::api::intern::Text;
use shared::api::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, Resource};

/// `v1` `Service`.
const SERVICES: Resource = Resource::namespaced("", "v1", "Service", "services");
/// The end of a limit's name for the devices of one class.
pub const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// The end of a limit's name for the claims of one storage class.
pub const CLAIMS_OF_CLASS: &str = ".storageclass.storage.k8s.io/persistentvolumeclaims";
/// The end of a limit's name for the storage of one storage class.
pub const STORAGE_OF_CLASS: &str = ".storageclass.storage.k8s.io/requests.storage";
/// The start of a limit's name for a request.
pub const REQUESTS: &str = "requests.";
/// The start of a limit's name for a limit.
pub const LIMITS: &str = "limits.";
pub const HUGE_PAGES: &str = "hugepages-";
/// The start of the name of an extended resource that stands for a device class.
pub const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";
/// The start of a limit's name for objects of one kind.
const COUNT: &str = "count/";
const OF_PODS: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const OF_SERVICES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];
const OF_CLAIMS: [&str; 3] = ["count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"];
/// Kinds that are counted under their plural alone, too. Upstream: `legacyObjectCountAliases`,
/// `pkg/quota/v1/evaluator/core/registry.go`.
const ALIASED: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
const RESOURCE_CLAIMS: (&str, &str) = ("resource.k8s.io", "resourceclaims");
const DEVICE_CLASSES: (&str, &str) = ("resource.k8s.io", "deviceclasses");

/// Group and plural, such as `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// `""` is the core group.
    pub group: Text,
    pub plural: Text,
}

impl GroupResource {
    fn new((group, plural): (&str, &str)) -> Self {
        Self { group: Text::new(group), plural: Text::new(plural) }
    }

    pub fn is(&self, resource: &Resource) -> bool {
        (&*self.group, &*self.plural) == (&*resource.group, &*resource.plural)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evaluator {
    /// Pods: their number, requests and limits.
    Pods,
    /// Services: their number, node ports and load balancers.
    Services,
    /// PersistentVolumeClaims: their number and storage, of all and of each class.
    Claims,
    /// ResourceClaims: their number, and devices by class.
    ResourceClaims,
    /// DeviceClasses, which say whether claims count under the name of an extended resource, too.
    DeviceClasses,
    Objects(GroupResource),
}

impl Evaluator {
    /// Those that a limit of this name is about; none if nothing is known by it. It may be several, as where a storage
    /// class has a name like a request. Left out: claims, where an extended resource stands for what they claim.
    pub fn of(name: &str) -> Vec<Self> {
        let mut found = Vec::new();
        if OF_PODS.contains(&name) || is_of_huge_pages(name) || extended_resource(name).is_some() {
            found.push(Self::Pods);
        }
        if extended_resource(name).is_some() {
            found.push(Self::DeviceClasses);
        }
        if OF_SERVICES.contains(&name) {
            found.push(Self::Services);
        }
        if OF_CLAIMS.contains(&name) || name.ends_with(CLAIMS_OF_CLASS) || name.ends_with(STORAGE_OF_CLASS) {
            found.push(Self::Claims);
        }
        if name.ends_with(DEVICES) {
            found.push(Self::ResourceClaims);
        }
        if ALIASED.contains(&name) {
            found.push(Self::Objects(GroupResource::new(("", name))));
        }
        if let Some(counted) = name.strip_prefix(COUNT).filter(|_| found.is_empty()) {
            let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
            found.push(match (group, plural) {
                RESOURCE_CLAIMS => Self::ResourceClaims,
                other => Self::Objects(GroupResource::new(other)),
            });
        }
        found
    }

    /// Where it is served, if that is known without asking.
    pub fn resource(&self) -> Option<Resource> {
        match self {
            Self::Pods => Some(PODS),
            Self::Services => Some(SERVICES),
            Self::Claims => Some(PERSISTENT_VOLUME_CLAIMS),
            Self::ResourceClaims | Self::DeviceClasses | Self::Objects(_) => None,
        }
    }

    /// Group and plural, where that is not known.
    pub fn group_resource(&self) -> GroupResource {
        match self {
            Self::Pods => GroupResource::new(("", "pods")),
            Self::Services => GroupResource::new(("", "services")),
            Self::Claims => GroupResource::new(("", "persistentvolumeclaims")),
            Self::ResourceClaims => GroupResource::new(RESOURCE_CLAIMS),
            Self::DeviceClasses => GroupResource::new(DEVICE_CLASSES),
            Self::Objects(of) => of.clone(),
        }
    }

    /// Whether a limit of this name counts pods that have ended, too.
    pub fn counts_ended_pods(name: &str) -> bool {
        name == "count/pods"
    }
}

fn is_of_huge_pages(name: &str) -> bool {
    name.strip_prefix(REQUESTS).unwrap_or(name).starts_with(HUGE_PAGES)
}

/// The extended resource that a limit of this name is about.
///
/// Upstream: `isExtendedResourceNameForQuota`, `pkg/quota/v1/evaluator/core/pods.go`.
pub fn extended_resource(name: &str) -> Option<&str> {
    name.strip_prefix(REQUESTS).filter(|resource| resource.starts_with(IMPLICIT) || !is_native(resource))
}

/// Whether a resource that containers request is counted as an extended one.
///
/// Upstream: `IsDRAExtendedResourceName`, `pkg/scheduler/util/utils.go`.
pub fn is_extended(resource: &str) -> bool {
    resource.starts_with(IMPLICIT) || (!is_native(resource) && !resource.starts_with(REQUESTS))
}

/// Upstream: `IsNativeResource`, `pkg/apis/core/v1/helper/helpers.go`.
fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// As upstream prints a `GroupResource`.
impl fmt::Display for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupResource { group, plural } = self.group_resource();
        if group.is_empty() { f.write_str(&plural) } else { write!(f, "{plural}.{group}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let found: Vec<String> = Evaluator::of(name).iter().map(Evaluator::to_string).collect();
        assert_eq!(found.join(" "), expected, "{name}");
    }

    /// Upstream: `TestPodEvaluatorMatchingResources`, `TestPersistentVolumeClaimEvaluatorMatchingResources`,
    /// `TestServiceEvaluatorMatchesResources`, `TestResourceClaimEvaluatorMatchingResources`.
    #[test]
    fn a_limits_name_says_what_it_counts() {
        for name in OF_PODS {
            check(name, "pods");
        }
        for name in ["hugepages-2Mi", "requests.hugepages-2Mi"] {
            check(name, "pods");
        }
        for name in ["requests.example.com/gpu", "requests.deviceclass.resource.kubernetes.io/gpu"] {
            check(name, "pods deviceclasses.resource.k8s.io");
        }
        for name in OF_SERVICES {
            check(name, "services");
        }
        for name in OF_CLAIMS {
            check(name, "persistentvolumeclaims");
        }
        check("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims");
        check("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "persistentvolumeclaims");
        check("count/resourceclaims.resource.k8s.io", "resourceclaims.resource.k8s.io");
        check("gpu.deviceclass.resource.k8s.io/devices", "resourceclaims.resource.k8s.io");
        for name in ALIASED {
            check(name, name);
            check(&format!("count/{name}"), name);
        }
        check("count/deployments.apps", "deployments.apps");
        check("count/crontabs.stable.example.com", "crontabs.stable.example.com");
    }

    #[test]
    fn nobody_counts_under_any_other_name() {
        for name in [
            "example.com/gpu",
            "storage",
            "limits.example.com/gpu",
            "limits.hugepages-2Mi",
            "requests.kubernetes.io/gpu",
            "gold.storageclass.storage.k8s.io/storage",
            "deployments.apps",
            "endpoints",
        ] {
            check(name, "");
        }
    }

    /// Upstream: `TestIsExtendedResourceName`, `pkg/apis/core/v1/helper/helpers_test.go`, and the implicit ones.
    #[test]
    fn extended_resources_have_a_domain_that_is_not_kubernetes_own() {
        for resource in ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"] {
            assert!(is_extended(resource), "{resource}");
        }
        for resource in ["cpu", "hugepages-2Mi", "kubernetes.io/gpu", "requests.example.com/gpu"] {
            assert!(!is_extended(resource), "{resource}");
        }
    }
}
