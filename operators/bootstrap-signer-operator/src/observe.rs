//! Reads the ConfigMap and the bootstrap tokens.

use std::sync::Arc;

use shared::api::bootstrap_token::{NAMESPACE, SELECTOR};
use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::{BootstrapToken, ClusterInfo, PUBLIC};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub cluster_info: Arc<ClusterInfo>,
    /// All tokens, including those that do not sign.
    pub tokens: Vec<Arc<BootstrapToken>>,
}

pub struct Caches {
    pub config_maps: Arc<Cache<ClusterInfo>>,
    /// The bootstrap tokens, while there is something to sign.
    pub secrets: Arc<Cache<BootstrapToken>>,
}

pub(crate) struct Informers {
    pub(crate) config_maps: Informer<ClusterInfo>,
    pub(crate) secrets: Informer<BootstrapToken>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let config_maps = InformerBuilder::new().namespace(PUBLIC).fields("metadata.name=cluster-info").build();
        let secrets = InformerBuilder::new().namespace(NAMESPACE).fields(SELECTOR).build();
        let caches = Self { config_maps: config_maps.cache(), secrets: secrets.cache() };
        (caches, Informers { config_maps, secrets })
    }

    /// Reads the ConfigMap of this key and the tokens; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let cluster_info = self.config_maps.get(key)?;
        Some(Observed { cluster_info, tokens: self.secrets.all() })
    }
}
