//! The views of a ServiceCIDR and of an IPAddress: ranges, the finalizer, the condition Ready, and single addresses.

pub mod cidr;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use shared::api::condition::Condition;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::time::Time;

use cidr::Cidr;

pub const SERVICE_CIDRS: Resource = Resource::cluster_scoped("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs");

pub const IP_ADDRESSES: Resource = Resource::cluster_scoped("networking.k8s.io", "v1", "IPAddress", "ipaddresses");

/// The finalizer of a ServiceCIDR. Upstream: `ServiceCIDRProtectionFinalizer`.
pub const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

/// The condition that says whether addresses are allocated from a ServiceCIDR. Upstream: `ServiceCIDRConditionReady`.
pub const READY: &str = "Ready";

/// The label selector of the IPAddresses that the apiserver allocates. Upstream: `LabelManagedBy`, `ControllerName`.
pub const ALLOCATED: &str = "ipaddress.kubernetes.io/managed-by=ipallocator.k8s.io";

/// The label of an IPAddress that names its family. Upstream: `LabelIPAddressFamily`.
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawServiceCidr")]
pub struct ServiceCidr {
    pub metadata: Meta,
    /// Its ranges, at most one of each family, without invalid ones.
    pub cidrs: Box<[Cidr]>,
    /// Its condition [`READY`].
    pub ready: Option<Condition>,
}

shared::view!(ServiceCidr, SERVICE_CIDRS);

impl ServiceCidr {
    /// Whether it has [`FINALIZER`].
    pub fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    }

    /// Whether one of its ranges overlaps one of the other's.
    ///
    /// Upstream: `OverlapsPrefix`, `pkg/api/servicecidr/servicecidr.go`.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.cidrs.iter().any(|cidr| other.cidrs.iter().any(|other| cidr.overlaps(other)))
    }

    /// Whether a Service may have this address from one of its ranges.
    ///
    /// Upstream: `ContainsAddress`, `pkg/api/servicecidr/servicecidr.go`.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.cidrs.iter().any(|cidr| cidr.contains(address))
    }

    /// Whether an IPAddress is in it and has the label of one of its families, as upstream requires.
    pub fn has_allocated(&self, address: &IpAddress) -> bool {
        let family = address.metadata.labels.get(FAMILY);
        address.address.is_some_and(|address| self.contains(address))
            && self.cidrs.iter().any(|cidr| family == Some(cidr.family().as_str()))
    }
}

/// The condition [`READY`] as it is applied. Upstream sends an empty reason too, and owns that field then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyCondition {
    /// [`READY`].
    #[serde(rename = "type")]
    pub type_: &'static str,
    /// `True` or `False`.
    pub status: &'static str,
    /// `""` if it is ready.
    pub reason: &'static str,
    pub message: &'static str,
    pub last_transition_time: Time,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawIpAddress")]
pub struct IpAddress {
    pub metadata: Meta,
    pub address: Option<IpAddr>,
}

shared::view!(IpAddress, IP_ADDRESSES);

#[derive(Deserialize)]
struct RawServiceCidr {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    cidrs: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl From<RawServiceCidr> for ServiceCidr {
    fn from(RawServiceCidr { metadata, spec, status }: RawServiceCidr) -> Self {
        let cidrs = spec.cidrs.iter().filter_map(|cidr| Cidr::parse(cidr)).collect();
        let ready = status.conditions.into_iter().find(|condition| condition.type_ == READY);
        Self { metadata, cidrs, ready }
    }
}

#[derive(Deserialize)]
struct RawIpAddress {
    metadata: Meta,
}

impl From<RawIpAddress> for IpAddress {
    fn from(RawIpAddress { metadata }: RawIpAddress) -> Self {
        let address = metadata.name().parse().ok();
        Self { metadata, address }
    }
}
