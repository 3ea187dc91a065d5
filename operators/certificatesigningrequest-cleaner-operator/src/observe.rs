//! Reads one request from the cache.

use std::sync::Arc;

use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::CertificateSigningRequest;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub request: Arc<CertificateSigningRequest>,
}

pub struct Caches {
    pub certificate_signing_requests: Arc<Cache<CertificateSigningRequest>>,
}

pub(crate) struct Informers {
    pub(crate) certificate_signing_requests: Informer<CertificateSigningRequest>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let certificate_signing_requests = InformerBuilder::new().build();
        let caches = Self { certificate_signing_requests: certificate_signing_requests.cache() };
        (caches, Informers { certificate_signing_requests })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.certificate_signing_requests.get(key).map(|request| Observed { request })
    }
}
