//! Reads one bootstrap token.

use std::sync::Arc;

use shared::api::bootstrap_token::{NAMESPACE, SELECTOR};
use shared::api::object::Key;
use shared::runtime::cache::Cache;
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::BootstrapToken;

/// The observation of one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The token.
    pub token: Arc<BootstrapToken>,
}

/// The caches of this operator.
pub struct Caches {
    /// The bootstrap tokens.
    pub secrets: Arc<Cache<BootstrapToken>>,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) secrets: Informer<BootstrapToken>,
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let secrets = InformerBuilder::new().namespace(NAMESPACE).fields(SELECTOR).build();
        (Self { secrets: secrets.cache() }, Informers { secrets })
    }

    /// Reads the token of this key; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.secrets.get(key).map(|token| Observed { token })
    }
}
