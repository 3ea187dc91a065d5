//! The view of an EndpointSlice: all fields that this operator writes, in the form it writes them.
//!
//! Left out: annotations, and owners that are not its controller.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shared::api::intern::{Interner, Text};
use shared::api::labels::Labels;
use shared::api::object::{Key, Meta, Uid};
pub use shared::controllers::endpoints::address::{AddressType, Target};

use super::{ENDPOINT_SLICES, SERVICES, labels};

/// An EndpointSlice.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSlice {
    /// Its metadata.
    pub metadata: Meta,
    /// The type of its addresses. It never changes.
    pub address_type: AddressType,
    /// The ports of all its endpoints.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub ports: Vec<EndpointPort>,
    /// Its endpoints.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub endpoints: Vec<Endpoint>,
}

shared::view!(EndpointSlice, ENDPOINT_SLICES);

impl EndpointSlice {
    /// The key of its Service, as its label says.
    ///
    /// Upstream: `ServiceControllerKey`, `staging/src/k8s.io/endpointslice/utils.go`.
    pub fn service(&self) -> Option<Key> {
        service_of(self.metadata.namespace(), &self.metadata.labels)
    }

    /// Whether the Service of this uid owns it.
    ///
    /// Upstream: `ownedBy`, `utils.go`, which takes owners that are no controllers too.
    pub fn is_owned_by(&self, service: Uid) -> bool {
        let owner = self.metadata.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == service && *owner.kind == *SERVICES.kind && owner.api_version == "v1")
    }
}

fn service_of(namespace: &str, own: &Labels) -> Option<Key> {
    own.get(labels::SERVICE_NAME).filter(|name| !name.is_empty()).map(|name| Key::new(namespace, name))
}

fn null_as_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let items: Option<Vec<T>> = Deserialize::deserialize(deserializer)?;
    let mut items = items.unwrap_or_default();
    items.shrink_to_fit();
    Ok(items)
}

/// One port of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// Its name, which may be `""`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// `TCP`, `UDP` or `SCTP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// The application protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<Text>,
}

/// One endpoint of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its addresses, sorted.
    pub addresses: Addresses,
    /// Whether it serves.
    #[serde(default)]
    pub conditions: Conditions,
    /// Its name within its Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    /// Its pod.
    #[serde(rename = "targetRef", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
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

impl Endpoint {
    /// Whether it is known to be ready.
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }

    /// Whether both are the same endpoint, in whatever state.
    ///
    /// Upstream: `hashEndpoint`, `staging/src/k8s.io/endpointslice/util/endpointset.go`.
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |endpoint: &Self| endpoint.target.as_ref().map(|target| target.key.clone());
        self.addresses == other.addresses && self.hostname == other.hostname && key(self) == key(other)
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
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use shared::api::intern::Text;

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
