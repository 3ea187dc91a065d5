//! A Service: its node ports, and whether it is a load balancer.
//!
//! Left out: the numbers of its ports. They are counted before they are allocated.

use serde::Deserialize;
use shared::api::object::{Key, Meta, ResourceVersion, null_as_default};

use super::countable;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawService")]
pub struct Service {
    pub key: Key,
    pub resource_version: ResourceVersion,
    pub facts: ServiceFacts,
}

countable!(Service, ServiceFacts);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceFacts {
    /// How many node ports it has or will have.
    pub node_ports: u64,
    pub is_load_balancer: bool,
}

#[derive(Deserialize)]
struct RawService {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    type_: String,
    #[serde(deserialize_with = "null_as_default")]
    ports: Vec<RawPort>,
    allocate_load_balancer_node_ports: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPort {
    #[serde(deserialize_with = "null_as_default")]
    node_port: i32,
}

/// Upstream: `Usage` and `portsWithNodePorts`, `pkg/quota/v1/evaluator/core/services.go`.
impl From<RawService> for Service {
    fn from(RawService { metadata, spec }: RawService) -> Self {
        let RawSpec { type_, ports, allocate_load_balancer_node_ports } = spec;
        let is_load_balancer = type_ == "LoadBalancer";
        let are_all_counted = allocate_load_balancer_node_ports != Some(false) || !is_load_balancer;
        let node_ports = match &*type_ {
            "NodePort" | "LoadBalancer" => ports.iter().filter(|port| are_all_counted || port.node_port != 0).count(),
            _ => 0,
        };
        let node_ports = u64::try_from(node_ports).unwrap_or(u64::MAX);
        let Meta { key, resource_version, .. } = metadata;
        Self { key, resource_version, facts: ServiceFacts { node_ports, is_load_balancer } }
    }
}
