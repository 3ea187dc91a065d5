//! The view of a Node: the CIDRs of its pods, its addresses and its condition NetworkUnavailable; and a route of the cloud.
//!
//! Left out: all that heartbeats write.

use std::fmt;

use cloud::{NodeAddress, Route};
use serde::Deserialize;
use shared::api::cidr::{Cidr, PodCidr};
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::NODES;

/// The condition about the network of a Node.
pub const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    pub metadata: Meta,
    /// Each once.
    pub pod_cidrs: Box<[PodCidr]>,
    pub addresses: Box<[Address]>,
    /// Its condition [`NETWORK_UNAVAILABLE`].
    pub network: Option<Condition>,
}

shared::view!(Node, NODES);

/// One of `status.addresses`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Address {
    #[serde(rename = "type")]
    pub type_: Text,
    pub address: Box<str>,
}

impl Address {
    fn is(&self, other: &NodeAddress) -> bool {
        self.type_ == *other.type_ && *self.address == *other.address
    }
}

impl From<&Address> for NodeAddress {
    fn from(Address { type_, address }: &Address) -> Self {
        Self { type_: type_.to_string(), address: address.to_string() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub status: Text,
    pub reason: Text,
}

/// The condition NetworkUnavailable, as this controller writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// It has its routes.
    Routed,
    Unrouted,
}

impl Network {
    pub fn status(self) -> &'static str {
        match self {
            Self::Routed => FALSE,
            Self::Unrouted => TRUE,
        }
    }

    pub fn reason(self) -> &'static str {
        match self {
            Self::Routed => "RouteCreated",
            Self::Unrouted => "NoRouteCreated",
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Self::Routed => "RouteController created a route",
            Self::Unrouted => "RouteController failed to create a route",
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl Node {
    /// Whether it has this condition already. The condition of a network plugin has other reasons.
    ///
    /// Upstream: `updateNetworkingCondition`.
    pub fn has_condition(&self, network: Network) -> bool {
        self.network.as_ref().is_some_and(|is| is.status == *network.status() && is.reason == *network.reason())
    }
}

/// A route as the cloud listed it, with its destination read.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRoute {
    pub route: Route,
    pub destination: PodCidr,
    /// False if it was created after the last list: its name and the provider's own keys are not known yet, and a
    /// provider deletes a route as it listed it.
    pub is_listed: bool,
}

impl From<Route> for ListedRoute {
    fn from(route: Route) -> Self {
        Self { destination: PodCidr::from(route.destination_cidr.as_str()), route, is_listed: true }
    }
}

impl ListedRoute {
    /// Whether it leads to the pods of a Node with these addresses.
    ///
    /// Upstream: `getRouteAction` and `equalNodeAddrs`. There a blackhole leads to its Node until it is deleted.
    pub fn leads_to(&self, addresses: &[Address]) -> bool {
        let has = &self.route.target_node_addresses;
        let is_among = |address: &Address| has.iter().any(|other| address.is(other));
        let is_same = || has.len() == addresses.len() && addresses.iter().all(is_among);
        !self.route.blackhole && (!self.route.enable_node_addresses || is_same())
    }

    /// Whether its destination is in a range of the cluster, so that nobody else needs it.
    ///
    /// Upstream: `isResponsibleForRoute`.
    pub fn is_ours(&self, cluster_cidrs: &[Cidr]) -> bool {
        let in_a_range = |destination: Cidr| cluster_cidrs.iter().any(|range| range.has_an_end_of(destination));
        self.destination.range().is_some_and(in_a_range)
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
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(rename = "podCIDRs", deserialize_with = "null_as_default")]
    pod_cidrs: Vec<PodCidr>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    addresses: Box<[Address]>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCondition {
    #[serde(rename = "type")]
    type_: Text,
    status: Text,
    reason: Text,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec, status }: RawNode) -> Self {
        let mut pod_cidrs = Vec::with_capacity(spec.pod_cidrs.len());
        for cidr in spec.pod_cidrs {
            if !pod_cidrs.contains(&cidr) {
                pod_cidrs.push(cidr);
            }
        }
        let network = status.conditions.into_iter().find(|condition| condition.type_ == *NETWORK_UNAVAILABLE);
        let network = network.map(|RawCondition { type_: _, status, reason }| Condition { status, reason });
        Self { metadata, pod_cidrs: pod_cidrs.into(), addresses: status.addresses, network }
    }
}
