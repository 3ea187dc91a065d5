//! The subsets of Endpoints: addresses grouped by their ports.
//!
//! Upstream: `pkg/api/v1/endpoints/util.go`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::address::{Referent, Target};
use crate::api::intern::Text;
use crate::api::object::{Uid, null_as_default};

/// Addresses with the same ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de>"))]
pub struct Subset<T = Target> {
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub addresses: Vec<Address<T>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub not_ready_addresses: Vec<Address<T>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub ports: Vec<Port>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Address<T = Target> {
    #[serde(default)]
    pub ip: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    #[serde(rename = "nodeName", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Text>,
    #[serde(rename = "targetRef", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<T>,
}

impl<T> Default for Address<T> {
    fn default() -> Self {
        Self { ip: Text::default(), hostname: None, node: None, target: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    /// Its name; `""` if it has none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Text,
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub protocol: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<Text>,
}

#[derive(Debug)]
pub struct Part<'a, T = Target> {
    pub address: &'a Address<T>,
    /// The port; none in a subset without ports.
    pub port: Option<&'a Port>,
    pub is_ready: bool,
}

/// The identity of an address, because two pods may have the same IP. Ordered as upstream's `LessEndpointAddress`.
type Id<'a> = (&'a str, Uid);

fn id<T: Referent>(address: &Address<T>) -> Id<'_> {
    (address.ip.as_str(), address.target.as_ref().map_or_else(Uid::default, T::uid))
}

/// Group parts into subsets, with addresses in upstream's order.
///
/// Upstream: `RepackSubsets`, without the last sorting.
pub fn pack<'a, T: Referent + Clone + 'a>(parts: impl IntoIterator<Item = Part<'a, T>>) -> Vec<Subset<T>> {
    let mut addresses: BTreeMap<Id<'a>, &'a Address<T>> = BTreeMap::new();
    let mut by_port: BTreeMap<Option<&'a Port>, BTreeMap<Id<'a>, bool>> = BTreeMap::new();
    for Part { address, port, is_ready } in parts {
        addresses.entry(id(address)).or_insert(address);
        // An address that is both ready and not ready counts as not ready.
        *by_port.entry(port).or_default().entry(id(address)).or_insert(true) &= is_ready;
    }
    let mut by_addresses: BTreeMap<Vec<(Id<'a>, bool)>, Vec<Port>> = BTreeMap::new();
    for (port, ids) in by_port {
        let ports = by_addresses.entry(ids.into_iter().collect()).or_default();
        // A port without a number counts as none.
        ports.extend(port.filter(|port| port.port > 0).cloned());
    }
    let subsets = by_addresses.into_iter().map(|(ids, ports)| {
        let of = |wanted: bool| -> Vec<Address<T>> {
            let ids = ids.iter().filter(|(_, is_ready)| *is_ready == wanted);
            ids.filter_map(|(id, _)| addresses.get(id).copied()).cloned().collect()
        };
        Subset { addresses: of(true), not_ready_addresses: of(false), ports }
    });
    subsets.collect()
}

pub fn parts<T>(subsets: &[Subset<T>]) -> impl Iterator<Item = Part<'_, T>> {
    subsets.iter().flat_map(|subset| {
        let ready = subset.addresses.iter().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().map(|address| (address, false));
        let addresses = ready.chain(not_ready);
        addresses.flat_map(move |(address, is_ready)| {
            let without = subset.ports.is_empty().then_some(None);
            let ports = subset.ports.iter().map(Some).chain(without);
            ports.map(move |port| Part { address, port, is_ready })
        })
    })
}
