//! Reads the metadata of requests live: all of them in each round, and each one before its deletion.
//!
//! A watch would deliver every write of every request. A list every few minutes finds each request well before its end.

use anyhow::Context;
use shared::api::object::Key;
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::{POD_CERTIFICATE_REQUESTS, PodCertificateRequest};

#[derive(Debug, PartialEq)]
pub struct Observed {
    pub request: PodCertificateRequest,
}

#[derive(Debug, PartialEq)]
pub enum Listed {
    Requests(Vec<PodCertificateRequest>),
    /// The apiserver does not serve the resource, because the feature is off.
    NotServed,
}

pub(crate) async fn live_request(control: &Control, key: &Key) -> anyhow::Result<Option<Observed>> {
    let read = control.get_metadata::<PodCertificateRequest>(&POD_CERTIFICATE_REQUESTS, key).await.unless_gone();
    Ok(read.context("cannot read the request")?.map(|request| Observed { request }))
}

pub(crate) async fn live_requests(control: &Control) -> anyhow::Result<Listed> {
    let mut requests = Vec::new();
    let each = |request: PodCertificateRequest| requests.push(request);
    let listed = control.list_each(&POD_CERTIFICATE_REQUESTS, "", Selection::default(), Accept::Metadata, each).await;
    match listed {
        Ok(()) => Ok(Listed::Requests(requests)),
        Err(error) if error.is_not_found() => Ok(Listed::NotServed),
        Err(error) => Err(error).context("cannot list the requests"),
    }
}
