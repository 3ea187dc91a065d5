//! The view of an EndpointSlice: all fields that an operator writes.

mod ports;

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::address::{AddressType, Referent, Target};
use crate::api::intern::{Interner, Text};
use crate::api::object::{Key, Kind, Meta, NoAnnotations, Object, Uid};
use crate::api::resource::Resource;
pub use ports::{EndpointPort, PortMapKey, in_order, port_map_key};

pub const ENDPOINT_SLICES: Resource = Resource::namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");

/// Label: the name of its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Label: the controller that writes it.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// An EndpointSlice, with views of its annotations (`A`) and of the targets of its endpoints (`T`).
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", bound = "A: Deserialize<'de> + Default, T: Deserialize<'de>")]
pub struct EndpointSlice<A = NoAnnotations, T = Target> {
    pub metadata: Meta<A>,
    /// The type of its addresses; immutable.
    pub address_type: AddressType,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub ports: Vec<EndpointPort>,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub endpoints: Vec<Endpoint<T>>,
}

impl<A, T> Object for EndpointSlice<A, T>
where
    A: for<'de> Deserialize<'de> + Default + Send + Sync + 'static,
    T: for<'de> Deserialize<'de> + Send + Sync + 'static,
{
    type Annotations = A;
    fn meta(&self) -> &Meta<A> {
        &self.metadata
    }
}

impl<A, T> Kind for EndpointSlice<A, T>
where
    Self: Object,
{
    const RESOURCE: Resource = ENDPOINT_SLICES;
}

impl<A, T> EndpointSlice<A, T> {
    /// The key of the Service in its label.
    ///
    /// Upstream: `ServiceControllerKey`, `staging/src/k8s.io/endpointslice/utils.go`.
    pub fn service(&self) -> Option<Key> {
        let name = self.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty());
        name.map(|name| Key::new(self.metadata.namespace(), name))
    }

    /// Whether the object of this kind and uid is its controller.
    ///
    /// Upstream: `ownedBy`, `utils.go`, which accepts any owner.
    pub fn is_owned_by(&self, kind: &Resource, owner: Uid) -> bool {
        let own = self.metadata.controller.as_ref();
        own.is_some_and(|own| own.uid == owner && *own.kind == *kind.kind && *own.api_version == *kind.api_version())
    }
}

fn null_as_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let items: Option<Vec<T>> = Deserialize::deserialize(deserializer)?;
    let mut items = items.unwrap_or_default();
    items.shrink_to_fit();
    Ok(items)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de>"))]
pub struct Endpoint<T = Target> {
    pub addresses: Addresses,
    #[serde(default)]
    pub conditions: Conditions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    #[serde(rename = "targetRef", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<T>,
    #[serde(rename = "nodeName", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "interned")]
    pub hints: Option<Arc<Hints>>,
}

fn interned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Hints>>, D::Error> {
    let hints: Option<Hints> = Deserialize::deserialize(deserializer)?;
    Ok(hints.map(|hints| HINTS.intern_owned(hints)))
}

impl<T: Referent + PartialEq> Endpoint<T> {
    /// Whether its condition `ready` is true.
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }

    /// Whether both are the same endpoint, in any state.
    ///
    /// Upstream: `hashEndpoint`, `staging/src/k8s.io/endpointslice/util/endpointset.go`.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_named_alike = self.target.as_ref().map(T::name) == other.target.as_ref().map(T::name);
        self.addresses == other.addresses && self.hostname == other.hostname && is_named_alike
    }

    /// Whether the same endpoint is in the same state, except for its hints.
    ///
    /// Upstream: `EndpointsEqualBeyondHash`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
    pub fn is_in_the_state_of(&self, other: &Self) -> bool {
        let Self { addresses: _, conditions, hostname: _, target, node, zone, hints: _ } = self;
        (conditions, target, node, zone) == (&other.conditions, &other.target, &other.node, &other.zone)
    }
}

/// The addresses of an endpoint, nearly always one IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    Ip(IpAddr),
    Texts(Box<[Box<str>]>),
}

impl Addresses {
    /// The addresses of a pod with these IPs; none if it has none.
    pub fn of(ips: impl IntoIterator<Item = IpAddr>) -> Option<Self> {
        let mut ips = ips.into_iter();
        let first = ips.next()?;
        let more: Vec<String> = ips.map(|ip| ip.to_string()).collect();
        if more.is_empty() {
            return Some(Self::Ip(first));
        }
        Some(Self::from_texts(std::iter::once(first.to_string()).chain(more).collect()))
    }

    fn from_texts(mut texts: Vec<String>) -> Self {
        if let [only] = texts.as_slice()
            && let Some(ip) = only.parse::<IpAddr>().ok().filter(|ip| ip.to_string() == *only)
        {
            return Self::Ip(ip);
        }
        texts.sort_unstable();
        Self::Texts(texts.into_iter().map(String::into_boxed_str).collect())
    }
}

impl Serialize for Addresses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ip(ip) => {
                let mut seq = serializer.serialize_seq(Some(1))?;
                seq.serialize_element(ip)?;
                seq.end()
            }
            Self::Texts(texts) => texts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts: Option<Vec<String>> = Deserialize::deserialize(deserializer)?;
        Ok(Self::from_texts(texts.unwrap_or_default()))
    }
}

/// The conditions of an endpoint; `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Whether it answers, even while it terminates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// The clients that should prefer an endpoint: those in these zones, or on these nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    #[serde(skip_serializing_if = "<[_]>::is_empty", with = "named")]
    pub for_zones: Box<[Text]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", with = "named")]
    pub for_nodes: Box<[Text]>,
}

static HINTS: LazyLock<Interner<Hints>> = LazyLock::new(Interner::new);

impl Hints {
    /// Hints for this zone and this node; equal hints share one allocation.
    pub fn new(zone: Option<&Text>, node: Option<&Text>) -> Arc<Self> {
        HINTS.intern_owned(Self {
            for_zones: zone.cloned().into_iter().collect(),
            for_nodes: node.cloned().into_iter().collect(),
        })
    }
}

/// A list of names as the API writes it: `[{"name": "zone-a"}]`.
mod named {
    use crate::api::intern::Text;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Named<T> {
        name: T,
    }

    pub(super) fn serialize<S: Serializer>(names: &[Text], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(names.iter().map(|name| Named { name }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[Text]>, D::Error> {
        let names: Option<Vec<Named<Text>>> = Deserialize::deserialize(deserializer)?;
        Ok(names.unwrap_or_default().into_iter().map(|named| named.name).collect())
    }
}
