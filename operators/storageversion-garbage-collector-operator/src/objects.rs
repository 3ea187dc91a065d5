//! The views of a StorageVersion (the apiservers that it names) and of an apiserver's Lease.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::{LEASES, Resource};

/// `internal.apiserver.k8s.io/v1alpha1` `StorageVersion`.
pub const STORAGE_VERSIONS: Resource =
    Resource::cluster_scoped("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", "storageversions");

/// The namespace of the Leases of apiservers.
pub const NAMESPACE: &str = "kube-system";

/// The label of an apiserver's Lease.
///
/// Upstream: `IdentityLeaseComponentLabelKey`, `pkg/controlplane/instance.go`.
const IDENTITY: &str = "apiserver.kubernetes.io/identity";
/// The value of that label on the Lease of each kube-apiserver.
const KUBE_APISERVER: &str = "kube-apiserver";
/// The label and its value as a selector.
pub const OF_APISERVERS: &str = "apiserver.kubernetes.io/identity=kube-apiserver";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawStorageVersion")]
pub struct StorageVersion {
    pub metadata: Meta,
    /// The IDs of the apiservers that have reported a version, each once.
    pub apiservers: Box<[Text]>,
}

shared::view!(StorageVersion, STORAGE_VERSIONS);

/// A Lease by its metadata.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Lease {
    pub metadata: Meta,
}

shared::view!(Lease, LEASES);

impl Lease {
    /// Whether it is the Lease of a kube-apiserver.
    pub fn is_of_apiserver(&self) -> bool {
        self.metadata.labels.get(IDENTITY) == Some(KUBE_APISERVER)
    }
}

#[derive(Deserialize)]
struct RawStorageVersion {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    storage_versions: Vec<RawEntry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawEntry {
    #[serde(rename = "apiServerID")]
    apiserver: Text,
}

impl From<RawStorageVersion> for StorageVersion {
    fn from(RawStorageVersion { metadata, status }: RawStorageVersion) -> Self {
        let mut apiservers: Vec<Text> = status.storage_versions.into_iter().map(|entry| entry.apiserver).collect();
        apiservers.sort();
        apiservers.dedup();
        Self { metadata, apiservers: apiservers.into() }
    }
}
