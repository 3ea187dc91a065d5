//! The view of a PodCertificateRequest: its metadata.

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::Resource;

/// `certificates.k8s.io/v1beta1` `PodCertificateRequest`, the version that upstream uses.
pub const POD_CERTIFICATE_REQUESTS: Resource =
    Resource::namespaced("certificates.k8s.io", "v1beta1", "PodCertificateRequest", "podcertificaterequests");

#[derive(Debug, PartialEq, Deserialize)]
pub struct PodCertificateRequest {
    pub metadata: Meta,
}
