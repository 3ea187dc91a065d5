//! Reads one bootstrap token.

use std::sync::Arc;

use shared::api::bootstrap_token::{NAMESPACE, SELECTOR};
use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::BootstrapToken;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub token: Arc<BootstrapToken>,
}

pub struct Caches {
    pub secrets: Arc<Cache<BootstrapToken>>,
}

pub(crate) struct Informers {
    pub(crate) secrets: Informer<BootstrapToken>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let secrets = InformerBuilder::new().namespace(NAMESPACE).fields(SELECTOR).build();
        (Self { secrets: secrets.cache() }, Informers { secrets })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.secrets.get(key).map(|token| Observed { token })
    }
}
