//! Reads what is to be known of one namespace: from the caches, and its ConfigMap anew before that is written.
//!
//! Left out: reading the CA, which is [`root_ca`]'s.

pub mod root_ca;

use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::runtime::cache::Cache;
use shared::runtime::control::Control;

use crate::objects::{CONFIG_MAPS, ConfigMap, Namespace, ROOT_CA_CONFIG_MAP};
use root_ca::RootCa;

/// What is known of one namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// It is there, and its phase is `Active`.
    pub is_active: bool,
    /// What is to be published; none if nobody has said.
    pub ca: Option<Text>,
    /// Its ConfigMap.
    pub config_map: Option<Arc<ConfigMap>>,
}

/// Where to read.
pub struct Sources {
    /// Active namespaces.
    pub namespaces: Arc<Cache<Namespace>>,
    /// ConfigMaps called `kube-root-ca.crt`.
    pub config_maps: Arc<Cache<ConfigMap>>,
    /// What is to be published.
    pub ca: Arc<RootCa>,
}

/// The key of a namespace's ConfigMap.
pub fn config_map_key(namespace: &Key) -> Key {
    Key::new(namespace.name(), ROOT_CA_CONFIG_MAP)
}

impl Sources {
    /// Reads the namespace of this key.
    pub fn observe(&self, namespace: &Key) -> Observed {
        Observed {
            is_active: self.namespaces.get(namespace).is_some(),
            ca: self.ca.current(),
            config_map: self.config_maps.get(&config_map_key(namespace)),
        }
    }
}

/// The ConfigMap as it is, with every field it has; none if it is gone.
pub(crate) async fn live(control: &Control, namespace: &Key) -> anyhow::Result<Option<Value>> {
    match control.get_raw(&CONFIG_MAPS, &config_map_key(namespace)).await {
        Ok(live) => Ok(Some(live)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).context("read the ConfigMap anew"),
    }
}
