//! Reads one request from the cache, and the CA of its signer from its files.
//!
//! The files are checked before each signature and not watched, so that a replaced CA never signs.

pub mod authority;
pub mod pair;

use std::sync::Arc;

use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::{CertificateSigningRequest, State};
use authority::Authorities;
use pair::Pair;

/// The observation of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its last known state.
    pub request: Arc<CertificateSigningRequest>,
    /// The CA of its signer; none if the signer has no files, or nothing is to be signed.
    pub pair: Option<Arc<Pair>>,
}

/// The cache of this operator, and the CAs.
pub struct Caches {
    /// All requests.
    pub certificate_signing_requests: Arc<Cache<CertificateSigningRequest>>,
    authorities: Authorities,
}

/// The informer that fills the cache.
pub(crate) struct Informers {
    pub(crate) certificate_signing_requests: Informer<CertificateSigningRequest>,
}

impl Caches {
    /// An empty cache, and the informer that fills it.
    pub(crate) fn new(authorities: Authorities) -> (Self, Informers) {
        let certificate_signing_requests = InformerBuilder::new().build();
        let caches = Self { certificate_signing_requests: certificate_signing_requests.cache(), authorities };
        (caches, Informers { certificate_signing_requests })
    }

    /// Reads the request of this key; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let request = self.certificate_signing_requests.get(key)?;
        let pair = match &request.state {
            State::Approved(approved) => self.authorities.current(approved.signer),
            State::Issued | State::NotApproved | State::Denied | State::Failed | State::OtherSigner => None,
        };
        Some(Observed { request, pair })
    }
}
