//! Pools of addresses, as a ConfigMap describes them: each key is a pool's name, and each value is JSON.
//!
//! Left out: the fields of MetalLB's pools that say how addresses are announced.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::Deserialize;
use shared::api::cidr::Family;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::Meta;
use shared::api::resource::Resource;
use shared::api::selector::{LabelSelector, Selector};

use super::address_range::AddressRange;
use super::pooled_service::Request;

pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");

/// The class of a Service that gets its address from a pool, unless the pool has another one.
pub const POOLS_CLASS: &str = "service.operators.local/address-pools";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawConfigMap")]
pub struct PoolsConfigMap {
    pub metadata: Meta,
    pub pools: Arc<AddressPools>,
}

shared::view!(PoolsConfigMap, CONFIG_MAPS);

/// The pools of a ConfigMap, without those that are wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddressPools {
    /// By name.
    pub pools: Vec<AddressPool>,
    /// The names of wrong pools, and what is wrong about each.
    pub faults: Vec<(Text, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AddressPool {
    pub name: Text,
    /// In the order in which they are filled.
    pub ranges: Box<[AddressRange]>,
    /// The namespaces whose Services it serves; all without a selector.
    pub namespaces: Option<Selector>,
    /// The class of the Services that it serves. `""` stands for Services without a class.
    pub class: Text,
    /// Whether a Service that names neither the pool nor an address gets one.
    pub is_automatic: bool,
}

impl AddressPools {
    pub fn parse(data: &BTreeMap<String, String>) -> Self {
        let mut parsed = Self::default();
        for (name, text) in data {
            match AddressPool::parse(name, text) {
                Ok(pool) => parsed.pools.push(pool),
                Err(fault) => parsed.faults.push((Text::new(name), fault)),
            }
        }
        parsed
    }

    /// Whether Services of this class get addresses here. A pool may be missing, so its own class always does.
    pub fn serve_class(&self, class: Option<&str>) -> bool {
        class == Some(POOLS_CLASS) || self.pools.iter().any(|pool| pool.serves_class(class))
    }

    /// Whether any pool needs the labels of namespaces.
    pub fn select_namespaces(&self) -> bool {
        self.pools.iter().any(|pool| pool.namespaces.is_some())
    }
}

impl AddressPool {
    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let raw: RawPool = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let RawPool { addresses, namespace_selector, load_balancer_class, auto_assign } = raw;
        if addresses.is_empty() {
            return Err("it has no addresses".to_owned());
        }
        let ranges: Result<Box<[AddressRange]>, _> = addresses.iter().map(|text| text.parse()).collect();
        let namespaces = namespace_selector.as_ref().map(Selector::parse).transpose();
        Ok(Self {
            name: Text::new(name),
            ranges: ranges.map_err(|error| error.to_string())?,
            namespaces: namespaces.map_err(|error| format!("namespaceSelector: {error}"))?,
            class: Text::new(load_balancer_class.as_deref().unwrap_or(POOLS_CLASS)),
            is_automatic: auto_assign,
        })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(address))
    }

    /// Its ranges of one family.
    pub fn ranges(&self, family: Family) -> impl Iterator<Item = AddressRange> {
        self.ranges.iter().copied().filter(move |range| range.family() == family)
    }

    /// Whether it serves Services of this class in a namespace with these labels.
    pub fn serves(&self, class: Option<&str>, namespace: &Labels) -> bool {
        self.serves_class(class) && self.namespaces.as_ref().is_none_or(|selector| selector.matches(namespace))
    }

    /// Whether a Service that asks for this may get a new address here.
    pub fn is_open_to(&self, request: &Request) -> bool {
        self.is_automatic || request.pool.is_some() || !request.wanted.is_empty()
    }

    fn serves_class(&self, class: Option<&str>) -> bool {
        self.class == *class.unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct RawConfigMap {
    metadata: Meta,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl From<RawConfigMap> for PoolsConfigMap {
    fn from(RawConfigMap { metadata, data }: RawConfigMap) -> Self {
        Self { metadata, pools: Arc::new(AddressPools::parse(&data.unwrap_or_default())) }
    }
}

/// A misspelt field would make a pool serve more than it should, so it is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawPool {
    addresses: Vec<String>,
    #[serde(default)]
    namespace_selector: Option<LabelSelector>,
    #[serde(default)]
    load_balancer_class: Option<String>,
    #[serde(default = "yes")]
    auto_assign: bool,
}

fn yes() -> bool {
    true
}
