//! The view of a Service that may get its address from a pool: what it asks for, and which addresses it has.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use shared::api::cidr::Family;
use shared::api::condition::Condition;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::time::Time;

use super::SERVICES;

/// The addresses that a Service wants, separated by commas.
pub const WANTED_ADDRESSES: &str = "service.operators.local/load-balancer-ips";
/// The pool from which a Service wants its addresses.
pub const WANTED_POOL: &str = "service.operators.local/address-pool";
/// Services with the same value may share an address.
pub const SHARING_KEY: &str = "service.operators.local/allow-shared-ip";
/// The condition that tells whether a Service has what it asks for.
pub const ADDRESS_ASSIGNED: &str = "service.operators.local/AddressAssigned";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawService")]
pub struct PooledService {
    pub metadata: Meta<PoolAnnotations>,
    /// Whether its type is `LoadBalancer`.
    pub is_load_balancer: bool,
    pub class: Option<Text>,
    pub user: User,
    /// What it asks for, or what is wrong with that.
    pub request: Result<Request, String>,
    /// The addresses in its status, in their order.
    pub addresses: Box<[IpAddr]>,
    /// Whether `status.loadBalancer` has anything else than the addresses, such as a host name.
    pub has_other_ingress: bool,
    /// Its condition [`ADDRESS_ASSIGNED`].
    pub assigned: Option<Condition>,
}

shared::view!(PooledService, SERVICES, PoolAnnotations);

/// The identity and the ports of a Service that has addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub service: Key,
    pub uid: Uid,
    pub creation: Option<Time>,
    pub ports: Box<[Port]>,
    /// The rule by which it shares its addresses; none if it does not share.
    pub sharing: Option<Sharing>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub protocol: Text,
    pub number: i32,
}

/// Two Services share an address only if both are equal in this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    pub key: Text,
    /// The selector of a Service with `externalTrafficPolicy: Local`: a node either passes all traffic of an address on to
    /// its own pods, or none.
    ///
    /// MetalLB: `BackendKey`, `internal/allocator/k8salloc/k8salloc.go`.
    pub local_backend: Option<Labels>,
}

/// What a Service asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One or two, in the order of `spec.ipFamilies`.
    pub families: Box<[Family]>,
    /// Whether an address of one family is enough.
    pub is_one_enough: bool,
    /// At most one of each family.
    pub wanted: Box<[IpAddr]>,
    /// The name of the only pool that it wants addresses from.
    pub pool: Option<Text>,
}

impl PooledService {
    /// Whether a pool may serve it, or has served it.
    pub fn may_be_for_pools(&self) -> bool {
        self.is_load_balancer || self.assigned.is_some()
    }
}

impl User {
    /// Whether both may have one address. They need a sharing key, and no port may be both's.
    ///
    /// MetalLB: `sharingOK` and `checkSharing`, `internal/allocator/allocator.go`.
    pub fn may_share_with(&self, other: &Self) -> bool {
        let is_both = |port: &Port| other.ports.contains(port);
        self.sharing.is_some() && self.sharing == other.sharing && !self.ports.iter().any(is_both)
    }

    /// Of two Services with one address that they cannot share, the older one keeps it.
    pub fn is_older_than(&self, other: &Self) -> bool {
        (self.creation, self.uid) < (other.creation, other.uid)
    }
}

/// The annotations that ask for something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PoolAnnotations {
    #[serde(rename = "service.operators.local/load-balancer-ips")]
    wanted_addresses: Option<Text>,
    #[serde(rename = "service.operators.local/address-pool")]
    wanted_pool: Option<Text>,
    #[serde(rename = "service.operators.local/allow-shared-ip")]
    sharing_key: Option<Text>,
}

#[derive(Deserialize)]
struct RawService {
    metadata: Meta<PoolAnnotations>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    r#type: Option<Text>,
    load_balancer_class: Option<Text>,
    #[serde(rename = "loadBalancerIP")]
    load_balancer_ip: Option<Text>,
    ip_families: Option<Vec<Text>>,
    ip_family_policy: Option<Text>,
    external_traffic_policy: Option<Text>,
    selector: Option<BTreeMap<String, String>>,
    ports: Option<Vec<RawPort>>,
}

#[derive(Deserialize)]
struct RawPort {
    #[serde(default)]
    protocol: Option<Text>,
    port: i32,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    load_balancer: RawLoadBalancer,
    conditions: Option<Vec<Condition>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawLoadBalancer {
    ingress: Option<Vec<RawIngress>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawIngress {
    ip: Option<Text>,
}

impl From<RawService> for PooledService {
    fn from(RawService { metadata, spec, status }: RawService) -> Self {
        let annotations = &metadata.annotations;
        let ingress = status.load_balancer.ingress.unwrap_or_default();
        let addresses: Box<[IpAddr]> =
            ingress.iter().filter_map(|ingress| ingress.ip.as_deref()?.parse().ok()).collect();
        let is_local = spec.external_traffic_policy.as_deref() == Some("Local");
        let local_backend = is_local.then(|| Labels::new(spec.selector.unwrap_or_default()));
        let sharing_key = annotations.sharing_key.clone().filter(|key| !key.is_empty());
        let ports = spec.ports.unwrap_or_default().into_iter();
        let user = User {
            service: metadata.key.clone(),
            uid: metadata.uid,
            creation: metadata.creation,
            ports: ports.map(RawPort::read).collect(),
            sharing: sharing_key.map(|key| Sharing { key, local_backend }),
        };
        let families = spec.ip_families.unwrap_or_default();
        let request = Request::read(
            families.iter().filter_map(|family| Family::parse(family)).collect(),
            spec.ip_family_policy.as_deref() == Some("PreferDualStack"),
            spec.load_balancer_ip.as_deref(),
            annotations,
        );
        Self {
            is_load_balancer: spec.r#type.as_deref() == Some("LoadBalancer"),
            class: spec.load_balancer_class,
            user,
            request,
            has_other_ingress: addresses.len() != ingress.len(),
            addresses,
            assigned: status.conditions.into_iter().flatten().find(|condition| condition.type_ == ADDRESS_ASSIGNED),
            metadata,
        }
    }
}

impl RawPort {
    fn read(self) -> Port {
        Port { protocol: self.protocol.unwrap_or_else(|| Text::new("TCP")), number: self.port }
    }
}

impl Request {
    /// MetalLB: `getDesiredLbIPs`, `controller/service.go`. A wanted address of one family is enough there only for a
    /// Service of one family; here the other one comes from the pool.
    fn read(
        families: Box<[Family]>,
        is_one_enough: bool,
        address: Option<&str>,
        annotations: &PoolAnnotations,
    ) -> Result<Self, String> {
        if families.is_empty() {
            return Err("spec.ipFamilies is empty".to_owned());
        }
        let wanted = match (address.filter(|text| !text.is_empty()), annotations.wanted_addresses.as_deref()) {
            (Some(_), Some(_)) => return Err(format!("both spec.loadBalancerIP and {WANTED_ADDRESSES} are set")),
            (Some(address), None) => parse_addresses("spec.loadBalancerIP", address)?,
            (None, Some(addresses)) => parse_addresses(WANTED_ADDRESSES, addresses)?,
            (None, None) => Box::default(),
        };
        for (number, address) in wanted.iter().enumerate() {
            let family = Family::of(*address);
            if !families.contains(&family) {
                return Err(format!("the Service has no family {family} for the address {address}"));
            }
            if wanted.iter().take(number).any(|earlier| Family::of(*earlier) == family) {
                return Err(format!("two addresses of the family {family} are wanted"));
            }
        }
        Ok(Self { families, is_one_enough, wanted, pool: annotations.wanted_pool.clone() })
    }
}

fn parse_addresses(from: &str, text: &str) -> Result<Box<[IpAddr]>, String> {
    let parse = |address: &str| address.trim().parse().map_err(|_| format!("{from}: {address:?} is no address"));
    text.split(',').map(parse).collect()
}
