//! The view of a ClusterTrustBundle: its certificates as one text; and the versions in which bundles are served.
//!
//! Left out: its signer, by which the apiserver selects. A bundle whose content is wrong is read anew before it is
//! written, and travels as it is.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, null_as_default};
use shared::api::resource::Resource;

/// `certificates.k8s.io/v1beta1` `ClusterTrustBundle`.
pub const CLUSTER_TRUST_BUNDLES: Resource =
    Resource::cluster_scoped("certificates.k8s.io", "v1beta1", "ClusterTrustBundle", "clustertrustbundles");
/// The same in `v1alpha1`.
pub const ALPHA_CLUSTER_TRUST_BUNDLES: Resource =
    Resource::cluster_scoped("certificates.k8s.io", "v1alpha1", "ClusterTrustBundle", "clustertrustbundles");

/// The signer of the certificates of apiservers.
///
/// Upstream: `newKubeAPIServerSignerClusterTrustBundledPublisherController`,
/// `cmd/kube-controller-manager/app/certificates.go`.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// The signer as the names of its bundles spell it, before a colon: the apiserver refuses another one.
pub const SIGNER_IN_NAMES: &str = "kubernetes.io:kube-apiserver-serving";

/// A version in which bundles are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `v1beta1`.
    Beta,
    /// `v1alpha1`.
    Alpha,
}

impl Version {
    /// The one to use first comes first, as upstream.
    pub const ALL: [Self; 2] = [Self::Beta, Self::Alpha];

    /// Bundles in this version.
    pub fn resource(self) -> Resource {
        match self {
            Self::Beta => CLUSTER_TRUST_BUNDLES,
            Self::Alpha => ALPHA_CLUSTER_TRUST_BUNDLES,
        }
    }
}

/// A bundle of any version: they differ in nothing.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawClusterTrustBundle")]
pub struct ClusterTrustBundle {
    /// Its metadata.
    pub metadata: Meta,
    /// Its certificates, PEM-encoded.
    pub trust_bundle: Text,
}

shared::view!(ClusterTrustBundle, CLUSTER_TRUST_BUNDLES);

#[derive(Deserialize)]
struct RawClusterTrustBundle {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
struct RawSpec {
    #[serde(default, rename = "trustBundle", deserialize_with = "null_as_default")]
    trust_bundle: Text,
}

impl From<RawClusterTrustBundle> for ClusterTrustBundle {
    fn from(RawClusterTrustBundle { metadata, spec: RawSpec { trust_bundle } }: RawClusterTrustBundle) -> Self {
        Self { metadata, trust_bundle }
    }
}

/// The one key of the queue: the signer.
pub fn signer_key() -> Key {
    Key::new("", SIGNER_IN_NAMES)
}

/// Whether a bundle of this name is one of the signer's.
pub fn is_of_signer(name: &str) -> bool {
    name.strip_prefix(SIGNER_IN_NAMES).is_some_and(|rest| rest.starts_with(':'))
}
