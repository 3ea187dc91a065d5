//! Reads one namespace from the caches.

use std::sync::Arc;

use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::{DEFAULT, Namespace, ServiceAccount};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub namespace: Key,
    /// Whether it exists and its phase is `Active`.
    pub is_active: bool,
    pub has_account: bool,
}

pub struct Caches {
    pub namespaces: Arc<Cache<Namespace>>,
    /// ServiceAccounts called `default`.
    pub service_accounts: Arc<Cache<ServiceAccount>>,
}

pub(crate) struct Informers {
    pub(crate) namespaces: Informer<Namespace>,
    pub(crate) service_accounts: Informer<ServiceAccount>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let namespaces = InformerBuilder::new().metadata_only().fields("status.phase=Active").build();
        let service_accounts = InformerBuilder::new().metadata_only().fields("metadata.name=default").build();
        let caches = Self { namespaces: namespaces.cache(), service_accounts: service_accounts.cache() };
        (caches, Informers { namespaces, service_accounts })
    }

    pub fn observe(&self, key: &Key) -> Observed {
        Observed {
            namespace: key.clone(),
            is_active: self.namespaces.get(key).is_some(),
            has_account: self.service_accounts.get(&Key::new(key.name(), DEFAULT)).is_some(),
        }
    }
}
