//! The view of an EndpointSlice: all fields that are written there, in the form in which they are written.
//!
//! Left out: owners that are not its controller, and annotations unless a view asks for them.

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

/// `discovery.k8s.io/v1` `EndpointSlice`.
pub const ENDPOINT_SLICES: Resource = Resource::namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");

/// A label: the name of its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// A label: who writes it.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// An EndpointSlice, with what is read of its annotations and of what its endpoints lead to.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", bound = "A: Deserialize<'de> + Default, T: Deserialize<'de>")]
pub struct EndpointSlice<A = NoAnnotations, T = Target> {
    /// Its metadata.
    pub metadata: Meta<A>,
    /// The type of its addresses. It never changes.
    pub address_type: AddressType,
    /// The ports of all its endpoints.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub ports: Vec<EndpointPort>,
    /// Its endpoints.
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
    /// The key of its Service, as its label says.
    ///
    /// Upstream: `ServiceControllerKey`, `staging/src/k8s.io/endpointslice/utils.go`.
    pub fn service(&self) -> Option<Key> {
        let name = self.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty());
        name.map(|name| Key::new(self.metadata.namespace(), name))
    }

    /// Whether the object of this kind and this uid is its controller.
    ///
    /// Upstream: `ownedBy`, `utils.go`, which takes owners that are no controllers too.
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

/// One endpoint of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de>"))]
pub struct Endpoint<T = Target> {
    /// Its addresses, sorted.
    pub addresses: Addresses,
    /// Whether it serves.
    #[serde(default)]
    pub conditions: Conditions,
    /// Its name within its Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    /// What it leads to, mostly a pod.
    #[serde(rename = "targetRef", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<T>,
    /// Where it runs.
    #[serde(rename = "nodeName", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Text>,
    /// In which zone that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Text>,
    /// For whom it is meant.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "interned")]
    pub hints: Option<Arc<Hints>>,
}

fn interned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Hints>>, D::Error> {
    let hints: Option<Hints> = Deserialize::deserialize(deserializer)?;
    Ok(hints.map(|hints| HINTS.intern_owned(hints)))
}

impl<T: Referent + PartialEq> Endpoint<T> {
    /// Whether it is known to be ready.
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }

    /// Whether both are the same endpoint, in whatever state.
    ///
    /// Upstream: `hashEndpoint`, `staging/src/k8s.io/endpointslice/util/endpointset.go`.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_named_alike = self.target.as_ref().map(T::name) == other.target.as_ref().map(T::name);
        self.addresses == other.addresses && self.hostname == other.hostname && is_named_alike
    }

    /// Whether the same endpoint is in the same state, hints apart.
    ///
    /// Upstream: `EndpointsEqualBeyondHash`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
    pub fn is_in_the_state_of(&self, other: &Self) -> bool {
        let Self { addresses: _, conditions, hostname: _, target, node, zone, hints: _ } = self;
        (conditions, target, node, zone) == (&other.conditions, &other.target, &other.node, &other.zone)
    }
}

/// The addresses of an endpoint; nearly always one IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// One IP, written as this build writes it.
    Ip(IpAddr),
    /// Anything else, sorted.
    Texts(Box<[Box<str>]>),
}

impl Addresses {
    /// Those of a pod; none if there are none.
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

/// Whether an endpoint serves; unknown where it is not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Whether new connections may go there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Whether it answers, be it on its way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Whether it is on its way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// For whom an endpoint is meant: clients in these zones, or on these nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// Names of zones.
    #[serde(skip_serializing_if = "<[_]>::is_empty", with = "named")]
    pub for_zones: Box<[Text]>,
    /// Names of nodes.
    #[serde(skip_serializing_if = "<[_]>::is_empty", with = "named")]
    pub for_nodes: Box<[Text]>,
}

static HINTS: LazyLock<Interner<Hints>> = LazyLock::new(Interner::new);

impl Hints {
    /// For this zone and this node, as far as they are given: one allocation for all that are the same.
    pub fn new(zone: Option<&Text>, node: Option<&Text>) -> Arc<Self> {
        HINTS.intern_owned(Self {
            for_zones: zone.cloned().into_iter().collect(),
            for_nodes: node.cloned().into_iter().collect(),
        })
    }
}

/// A list of names, each an object in the API: `[{"name": "zone-a"}]`.
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
