//! The views of a node: one for the cache, and one with the JSON that a provider gets.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::object::{Meta, NoAnnotations, Object, null_as_default};
use shared::api::raw::without_managed_fields;
use shared::api::resource::NODES;
use shared::api::taint::{KnownTaint, ServedTaint};

/// The taint of a node whose instance is shut down.
///
/// Upstream: `ShutdownTaint`, `staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/node_lifecycle_controller.go`.
pub const SHUTDOWN: KnownTaint = KnownTaint::no_schedule("node.cloudprovider.kubernetes.io/shutdown");

const READY: &str = "Ready";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    pub metadata: Meta,
    pub ready: Ready,
    pub taints: Box<[ServedTaint]>,
    /// The part of `spec.providerID` before `://`, which names the cloud; `""` if there is none.
    pub cloud: Text,
}

shared::view!(Node, NODES);

/// The status of the condition `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ready {
    True,
    False,
    /// `Unknown`, missing, or none of the three.
    Unknown,
}

impl Node {
    pub fn is_ready(&self) -> bool {
        self.ready == Ready::True
    }

    pub fn is_tainted(&self) -> bool {
        self.taints.iter().any(|served| SHUTDOWN.is(&served.taint))
    }

    /// Whether a provider that knows this node should know the other one: nobody says that they are of two clouds.
    pub fn may_share_cloud(&self, other: &Self) -> bool {
        self.cloud.is_empty() || self.cloud == other.cloud
    }
}

/// A node that was read live.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct LiveNode {
    pub node: Node,
    /// All of it but the managed fields.
    pub whole: Box<RawValue>,
}

impl Object for LiveNode {
    type Annotations = NoAnnotations;

    fn meta(&self) -> &Meta {
        &self.node.metadata
    }
}

impl TryFrom<Box<RawValue>> for LiveNode {
    type Error = serde_json::Error;

    fn try_from(whole: Box<RawValue>) -> Result<Self, Self::Error> {
        Ok(Self { node: serde_json::from_str(whole.get())?, whole: without_managed_fields(&whole)? })
    }
}

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(rename = "providerID")]
    provider_id: String,
    #[serde(deserialize_with = "null_as_default")]
    taints: Box<[ServedTaint]>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCondition {
    #[serde(rename = "type")]
    type_: Text,
    status: Text,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec, status }: RawNode) -> Self {
        let ready = status.conditions.iter().find(|condition| condition.type_ == *READY);
        let ready = match ready.map(|ready| ready.status.as_str()) {
            Some(TRUE) => Ready::True,
            Some(FALSE) => Ready::False,
            Some(_) | None => Ready::Unknown,
        };
        let cloud = spec.provider_id.split_once("://").map_or("", |(cloud, _)| cloud);
        Self { metadata, ready, taints: spec.taints, cloud: Text::new(cloud) }
    }
}
