//! Reads a Service, the labels of its namespace and the pools from the caches.

use std::sync::Arc;

use serde::Deserialize;
use shared::api::labels::Labels;
use shared::api::object::{Key, Meta};
use shared::api::resource::NAMESPACES;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::pools::PoolsMemory;
use crate::objects::address_pool::{AddressPools, PoolsConfigMap};
use crate::objects::pooled_service::PooledService;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub service: Arc<PooledService>,
    /// The labels of its namespace; none if no pool selects namespaces.
    pub namespace: Labels,
    pub pools: Arc<AddressPools>,
    /// Whether the ConfigMap exists.
    pub is_configured: bool,
}

/// A namespace, by its labels.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Namespace {
    pub metadata: Meta,
}

shared::view!(Namespace, NAMESPACES);

pub struct Caches {
    pub services: Arc<Cache<PooledService>>,
    services_by_namespace: IndexId,
    /// The ConfigMap of the pools alone.
    pub config_maps: Arc<Cache<PoolsConfigMap>>,
    /// Followed while a pool selects namespaces.
    pub namespaces: Arc<Cache<Namespace>>,
    pub memory: PoolsMemory,
}

pub(crate) struct Informers {
    pub(crate) services: Informer<PooledService>,
    pub(crate) config_maps: Informer<PoolsConfigMap>,
    pub(crate) namespaces: Informer<Namespace>,
}

impl Observed {
    /// Whether no pool is missing or left out for its faults.
    pub fn knows_all_pools(&self) -> bool {
        self.is_configured && self.pools.faults.is_empty()
    }
}

impl Caches {
    /// The caches for pools that are in this ConfigMap.
    pub(crate) fn new(config_map: &Key) -> (Self, Informers) {
        let mut services = InformerBuilder::new();
        let services_by_namespace = services.index_by_namespace();
        let services = services.build();
        let by_name = format!("metadata.name={}", config_map.name());
        let config_maps = InformerBuilder::new().namespace(config_map.namespace()).fields(by_name).build();
        let namespaces = InformerBuilder::new().metadata_only().build();
        let caches = Self {
            services: services.cache(),
            services_by_namespace,
            config_maps: config_maps.cache(),
            namespaces: namespaces.cache(),
            memory: PoolsMemory::default(),
        };
        (caches, Informers { services, config_maps, namespaces })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let service = self.services.get(key)?;
        let config_map = self.config_maps.all().pop();
        let namespace = self.namespaces.get(&Key::new("", key.namespace()));
        Some(Observed {
            service,
            namespace: namespace.map(|namespace| namespace.metadata.labels.clone()).unwrap_or_default(),
            pools: config_map.as_ref().map(|config_map| Arc::clone(&config_map.pools)).unwrap_or_default(),
            is_configured: config_map.is_some(),
        })
    }

    /// The Services of one namespace.
    pub fn services_in(&self, namespace: &str) -> Vec<Arc<PooledService>> {
        self.services.by_index(self.services_by_namespace, &IndexValue::Text(namespace.into()))
    }
}
