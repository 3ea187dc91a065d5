//! Reads one namespace from the caches, and its ConfigMap live if the cached one is wrong.

use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::{CONFIG_MAPS, ConfigMap, Fault, Namespace, ROOT_CA_CONFIG_MAP};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub namespace: Key,
    /// Whether it exists and its phase is `Active`.
    pub is_active: bool,
    /// The CA to publish; none if none is known.
    pub ca: Option<Text>,
    pub config_map: Option<Arc<ConfigMap>>,
    /// The ConfigMap as read live, with every field, if the cached one is wrong; none if it is gone.
    pub live: Option<Value>,
}

impl Observed {
    /// The fault of the cached ConfigMap, if there is one and a CA to publish.
    pub fn fault(&self) -> Option<Fault> {
        self.config_map.as_ref()?.fault(self.ca.as_ref()?)
    }
}

pub struct Caches {
    pub namespaces: Arc<Cache<Namespace>>,
    /// ConfigMaps called `kube-root-ca.crt`.
    pub config_maps: Arc<Cache<ConfigMap>>,
}

pub(crate) struct Informers {
    pub(crate) namespaces: Informer<Namespace>,
    pub(crate) config_maps: Informer<ConfigMap>,
}

pub fn config_map_key(namespace: &Key) -> Key {
    Key::new(namespace.name(), ROOT_CA_CONFIG_MAP)
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let namespaces = InformerBuilder::new().metadata_only().fields("status.phase=Active").build();
        let config_maps = InformerBuilder::new().fields("metadata.name=kube-root-ca.crt").build();
        let caches = Self { namespaces: namespaces.cache(), config_maps: config_maps.cache() };
        (caches, Informers { namespaces, config_maps })
    }

    pub fn observe(&self, key: &Key, ca: Option<Text>) -> Observed {
        Observed {
            namespace: key.clone(),
            is_active: self.namespaces.get(key).is_some(),
            ca,
            config_map: self.config_maps.get(&config_map_key(key)),
            live: None,
        }
    }
}

pub(crate) async fn live_config_map(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let live = control.get_raw(&CONFIG_MAPS, &config_map_key(&observed.namespace)).await;
    let live = live.unless_absent().context("cannot read the ConfigMap")?;
    Ok(Observed { live, ..observed })
}
