//! The views of a node: one for the cache, and one with what is changed and the JSON that a provider gets.

use cloud::NodeAddress;
use serde::Deserialize;
use serde_json::value::RawValue;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::raw::without_managed_fields;
use shared::api::resource::NODES;
use shared::api::taint::{ServedTaint, Taint};

/// The key of the taint with which a kubelet registers its node if it leaves the rest to a cloud.
///
/// Upstream: `TaintExternalCloudProvider`, `staging/src/k8s.io/cloud-provider/api/well_known_taints.go`.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The labels of a zone, a region and an instance type: the deprecated label, and the one that has replaced it.
///
/// Upstream: `labelReconcileInfo`, `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`.
pub const ZONE: Pair = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
pub const REGION: Pair = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region");
pub const INSTANCE_TYPE: Pair = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type");

/// A deprecated label, and the label that has replaced it.
pub type Pair = (&'static str, &'static str);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    pub metadata: Meta,
    /// Whether it has the taint [`UNINITIALIZED`].
    pub is_uninitialized: bool,
}

shared::view!(Node, NODES);

/// A node that was read live.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct LiveNode {
    pub metadata: Meta<Annotations>,
    pub provider_id: Text,
    pub taints: Box<[ServedTaint]>,
    pub addresses: Vec<NodeAddress>,
    /// All of it but the managed fields.
    pub whole: Box<RawValue>,
}

shared::view!(LiveNode, NODES, Annotations);

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Annotations {
    /// The addresses of `--node-ip` of the kubelet.
    ///
    /// Upstream: `AnnotationAlphaProvidedIPAddr`, `staging/src/k8s.io/cloud-provider/api/well_known_annotations.go`.
    #[serde(default, rename = "alpha.kubernetes.io/provided-node-ip")]
    pub provided_ip: Option<Text>,
}

/// Upstream: `getCloudTaint`, `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`, which does not
/// look at the effect.
pub fn is_uninitialized(taint: &Taint) -> bool {
    taint.key == *UNINITIALIZED
}

impl LiveNode {
    pub fn is_uninitialized(&self) -> bool {
        self.taints.iter().any(|served| is_uninitialized(&served.taint))
    }
}

impl PartialEq for LiveNode {
    fn eq(&self, other: &Self) -> bool {
        self.whole.get() == other.whole.get()
    }
}

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec<Taint>,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec }: RawNode) -> Self {
        Self { metadata, is_uninitialized: spec.taints.iter().any(is_uninitialized) }
    }
}

#[derive(Deserialize)]
struct RawLiveNode {
    metadata: Meta<Annotations>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec<ServedTaint>,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct RawSpec<T> {
    #[serde(default, rename = "providerID")]
    provider_id: Text,
    #[serde(default = "none", deserialize_with = "null_as_default")]
    taints: Box<[T]>,
}

fn none<T>() -> Box<[T]> {
    Box::default()
}

impl<T> Default for RawSpec<T> {
    fn default() -> Self {
        Self { provider_id: Text::default(), taints: none() }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    addresses: Vec<NodeAddress>,
}

impl TryFrom<Box<RawValue>> for LiveNode {
    type Error = serde_json::Error;

    fn try_from(whole: Box<RawValue>) -> Result<Self, Self::Error> {
        let RawLiveNode { metadata, spec: RawSpec { provider_id, taints }, status: RawStatus { addresses } } =
            serde_json::from_str(whole.get())?;
        let whole = without_managed_fields(&whole)?;
        Ok(Self { metadata, provider_id, taints, addresses, whole })
    }
}
