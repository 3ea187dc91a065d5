//! The names of a resource in the API (group, version, plural and kind), and the paths that follow from them.
//!
//! Left out: discovery. An operator with fixed kinds names them in constants; those that discover build these values.

use std::borrow::Cow;
use std::fmt;

use super::url::segment;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// `""` is the core group.
    pub group: Cow<'static, str>,
    /// For example `v1`.
    pub version: Cow<'static, str>,
    /// For example `ReplicaSet`.
    pub kind: Cow<'static, str>,
    /// For example `replicasets`, as in paths and RBAC rules.
    pub plural: Cow<'static, str>,
    pub namespaced: bool,
}

impl Resource {
    /// A namespaced resource that is known at build time.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            namespaced: true,
        }
    }

    /// A cluster-scoped resource that is known at build time.
    pub const fn cluster_scoped(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        let mut resource = Self::namespaced(group, version, kind, plural);
        resource.namespaced = false;
        resource
    }

    /// `v1` or `apps/v1`, as in `apiVersion`.
    pub fn api_version(&self) -> String {
        match self.group.as_ref() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// As Go prints a `GroupVersionResource`: `apps/v1, Resource=deployments`, and `/v1, Resource=pods` of the core group.
    pub fn gvr(&self) -> String {
        let Self { group, version, plural, kind: _, namespaced: _ } = self;
        format!("{group}/{version}, Resource={plural}")
    }

    /// The path of the collection: of one namespace, or with `""` of all.
    pub fn collection_path(&self, namespace: &str) -> String {
        let Self { group, version, plural, .. } = self;
        let (group, version, plural) = (segment(group), segment(version), segment(plural));
        let root = if self.group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{}/{plural}", segment(namespace))
        } else {
            format!("{root}/{plural}")
        }
    }

    /// The path of one object; `subresource` may be `""`.
    pub fn object_path(&self, namespace: &str, name: &str, subresource: &str) -> String {
        let object = format!("{}/{}", self.collection_path(namespace), segment(name));
        if subresource.is_empty() { object } else { format!("{object}/{}", segment(subresource)) }
    }
}

/// As upstream prints a `GroupResource`: `pods`, `replicasets.apps`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_ref() {
            "" => f.write_str(&self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

/// `v1` `Pod`.
pub const PODS: Resource = Resource::namespaced("", "v1", "Pod", "pods");
/// `v1` `Namespace`.
pub const NAMESPACES: Resource = Resource::cluster_scoped("", "v1", "Namespace", "namespaces");
/// `v1` `ReplicationController`.
pub const REPLICATION_CONTROLLERS: Resource =
    Resource::namespaced("", "v1", "ReplicationController", "replicationcontrollers");
/// `v1` `Event`.
pub const EVENTS: Resource = Resource::namespaced("", "v1", "Event", "events");
pub const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "ReplicaSet", "replicasets");
pub const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "Deployment", "deployments");
pub const CONTROLLER_REVISIONS: Resource =
    Resource::namespaced("apps", "v1", "ControllerRevision", "controllerrevisions");
pub const JOBS: Resource = Resource::namespaced("batch", "v1", "Job", "jobs");
/// `v1` `Node`.
pub const NODES: Resource = Resource::cluster_scoped("", "v1", "Node", "nodes");
/// `v1` `ConfigMap`.
pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
/// `v1` `Secret`.
pub const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");
pub const CERTIFICATE_SIGNING_REQUESTS: Resource =
    Resource::cluster_scoped("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests");
/// `v1` `PersistentVolume`.
pub const PERSISTENT_VOLUMES: Resource = Resource::cluster_scoped("", "v1", "PersistentVolume", "persistentvolumes");
/// `v1` `PersistentVolumeClaim`.
pub const PERSISTENT_VOLUME_CLAIMS: Resource =
    Resource::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub const CSI_DRIVERS: Resource = Resource::cluster_scoped("storage.k8s.io", "v1", "CSIDriver", "csidrivers");
pub const LEASES: Resource = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
/// `scheduling.k8s.io/v1alpha2` `PodGroup`, the version that upstream uses.
pub const POD_GROUPS: Resource = Resource::namespaced("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(PODS.collection_path(""), "/api/v1/pods");
        assert_eq!(PODS.object_path("ns", "a", ""), "/api/v1/namespaces/ns/pods/a");
        assert_eq!(REPLICA_SETS.object_path("ns", "a", "status"), "/apis/apps/v1/namespaces/ns/replicasets/a/status");
        assert_eq!(NAMESPACES.object_path("", "a", "finalize"), "/api/v1/namespaces/a/finalize");
        assert_eq!(REPLICA_SETS.to_string(), "replicasets.apps");
    }

    #[test]
    fn a_name_stays_one_segment_of_the_path() {
        let roles = Resource::namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles");
        let check = |name: &str, expected: &str| {
            let path = roles.object_path("ns", name, "");
            let (_, last) = path.split_once("/namespaces/ns/roles/").unwrap();
            assert_eq!(last, expected, "{name:?}");
        };
        check("system:controller:a", "system:controller:a");
        check("dev?x", "dev%3Fx");
        check("dev x#y", "dev%20x%23y");
        check("../../secrets/a", "..%2F..%2Fsecrets%2Fa");
        check("\u{e9}%", "%C3%A9%25");
        assert_eq!(PODS.collection_path("a/b?c"), "/api/v1/namespaces/a%2Fb%3Fc/pods");
    }
}
