//! Reads the metadata of requests, live: of all of them in each round, and of one when its time is over.
//!
//! Each pod with such a certificate makes a request now and then, and each request is written a few times before it is
//! of no use any more. To follow them would bring all of these writes; a list every few minutes finds each request
//! long before its end.
//! Left out: caches.

use anyhow::Context;
use shared::api::object::Key;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};

use crate::objects::{POD_CERTIFICATE_REQUESTS, PodCertificateRequest};

/// The observation of one request.
#[derive(Debug, PartialEq)]
pub struct Observed {
    /// As it was just read.
    pub request: PodCertificateRequest,
}

/// The observation of a round.
#[derive(Debug, PartialEq)]
pub enum Listed {
    /// All requests that are there.
    Requests(Vec<PodCertificateRequest>),
    /// The apiserver does not serve any, as long as the feature is off.
    NotServed,
}

/// The request of this key as it is; none if it is gone.
pub(crate) async fn live_request(control: &Control, key: &Key) -> anyhow::Result<Option<Observed>> {
    match control.get_metadata(&POD_CERTIFICATE_REQUESTS, key).await {
        Ok(request) => Ok(Some(Observed { request })),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).context("read the request"),
    }
}

/// All requests as they are.
pub(crate) async fn live_requests(control: &Control) -> anyhow::Result<Listed> {
    let mut requests = Vec::new();
    let each = |request: PodCertificateRequest| requests.push(request);
    let listed = control.list_each(&POD_CERTIFICATE_REQUESTS, "", Selection::default(), Accept::Metadata, each).await;
    match listed {
        Ok(()) => Ok(Listed::Requests(requests)),
        Err(error) if error.is_not_found() => Ok(Listed::NotServed),
        Err(error) => Err(error).context("list the requests"),
    }
}
