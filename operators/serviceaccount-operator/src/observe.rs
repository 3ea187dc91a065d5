//! Reads, from the caches, what is to be known of one namespace.
//!
//! Left out: live reads. What a stale cache misses, the apiserver says by refusing.

use std::sync::Arc;

use shared::api::object::Key;
use shared::runtime::cache::Cache;

use crate::objects::{DEFAULT, Namespace, ServiceAccount};

/// What is known of one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// It is there, and its phase is `Active`.
    pub is_active: bool,
    /// It has its account.
    pub has_account: bool,
}

/// Where to read.
pub struct Sources {
    /// Active namespaces.
    pub namespaces: Arc<Cache<Namespace>>,
    /// ServiceAccounts called `default`.
    pub accounts: Arc<Cache<ServiceAccount>>,
}

impl Sources {
    /// Reads the namespace of this key.
    pub fn observe(&self, namespace: &Key) -> Observed {
        Observed {
            is_active: self.namespaces.get(namespace).is_some(),
            has_account: self.accounts.get(&Key::new(namespace.name(), DEFAULT)).is_some(),
        }
    }
}
