//! The view of a ClusterTrustBundle: its certificates as one text. The names of bundles.

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, null_as_default};
use shared::api::resource::Resource;

/// `certificates.k8s.io/v1beta1` `ClusterTrustBundle`, the version that upstream prefers.
pub const CLUSTER_TRUST_BUNDLES: Resource =
    Resource::cluster_scoped("certificates.k8s.io", "v1beta1", "ClusterTrustBundle", "clustertrustbundles");

/// The signer of the certificates of apiservers.
///
/// Upstream: `newKubeAPIServerSignerClusterTrustBundledPublisherController`,
/// `cmd/kube-controller-manager/app/certificates.go`.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// The signer as the apiserver requires it in the names of its bundles, before a colon.
pub const SIGNER_IN_NAMES: &str = "kubernetes.io:kube-apiserver-serving";

/// A bundle. Its versions do not differ.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawClusterTrustBundle")]
pub struct ClusterTrustBundle {
    pub metadata: Meta,
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

/// How many bytes of the CA's hash are in the name of its bundle.
const HASH_BYTES: usize = 12;

/// The name of the bundle with this CA: its signer, and the beginning of the CA's hash.
///
/// Upstream: `constructBundleName`, `pkg/controller/certificates/clustertrustbundlepublisher/publisher.go`.
pub fn bundle_name(ca: &str) -> String {
    let hash = digest(&SHA256, ca.as_bytes());
    let number = hash.as_ref().iter().take(HASH_BYTES).fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    format!("{SIGNER_IN_NAMES}:{number:0width$x}", width = 2 * HASH_BYTES)
}

/// The one key of the queue: the signer.
pub fn signer_key() -> Key {
    Key::new("", SIGNER_IN_NAMES)
}

/// Whether a bundle of this name is one of the signer's.
pub fn is_of_signer(name: &str) -> bool {
    name.strip_prefix(SIGNER_IN_NAMES).is_some_and(|rest| rest.starts_with(':'))
}
