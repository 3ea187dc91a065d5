//! What a provider tells about itself and its cloud.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::CloudError;

/// How much of the protocol this crate knows.
pub const PROTOCOL_VERSION: u32 = 1;

/// A provider's name and capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "capabilities are independent")]
pub struct Info {
    pub name: String,
    /// How much of the protocol it knows: [`PROTOCOL_VERSION`] is all that this crate uses.
    pub protocol_version: u32,
    pub load_balancers: bool,
    pub instances: bool,
    pub routes: bool,
    /// Whether it tells the resources of this cluster from those of others.
    pub has_cluster_id: bool,
}

/// The load balancer of a Service.
#[derive(Clone, Debug)]
pub struct LoadBalancer {
    /// The name that it has or would have.
    pub name: String,
    /// A LoadBalancerStatus; none if there is no load balancer.
    pub status: Option<Box<RawValue>>,
}

/// One address of a node, as a Node's status has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeAddress {
    #[serde(rename = "type")]
    pub type_: String,
    pub address: String,
}

/// What a cloud knows about the instance of a node.
///
/// Upstream: `InstanceMetadata`, cloud.go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceMetadata {
    #[serde(rename = "providerID", skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance_type: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_addresses: Vec<NodeAddress>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub region: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_labels: BTreeMap<String, String>,
}

/// A route of the cloud to the pods of a node.
///
/// Upstream: `Route`, cloud.go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Route {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_node: String,
    /// Whether the provider compares and uses [`Self::target_node_addresses`].
    pub enable_node_addresses: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_node_addresses: Vec<NodeAddress>,
    #[serde(rename = "destinationCIDR")]
    pub destination_cidr: String,
    /// Whether it leads nowhere: its node is gone.
    pub blackhole: bool,
    /// The provider's own keys, which go back to it with a deletion.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// The JSON in which an object travels.
pub(crate) fn written(object: &impl Serialize) -> Result<Vec<u8>, CloudError> {
    serde_json::to_vec(object).map_err(|error| CloudError::Failed(format!("cannot write JSON: {error}")))
}
