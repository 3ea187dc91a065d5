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

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its last known state.
    pub request: Arc<CertificateSigningRequest>,
    /// The CA of its signer; none if the signer has no files, or nothing is to be signed.
    pub pair: Option<Arc<Pair>>,
}

pub struct Caches {
    pub certificate_signing_requests: Arc<Cache<CertificateSigningRequest>>,
    authorities: Authorities,
}

pub(crate) struct Informers {
    pub(crate) certificate_signing_requests: Informer<CertificateSigningRequest>,
}

impl Caches {
    pub(crate) fn new(authorities: Authorities) -> (Self, Informers) {
        let certificate_signing_requests = InformerBuilder::new().build();
        let caches = Self { certificate_signing_requests: certificate_signing_requests.cache(), authorities };
        (caches, Informers { certificate_signing_requests })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let request = self.certificate_signing_requests.get(key)?;
        let pair = match &request.state {
            State::Approved(approved) => self.authorities.current(approved.signer),
            State::Issued | State::NotApproved | State::Denied | State::Failed | State::OtherSigner => None,
        };
        Some(Observed { request, pair })
    }
}
