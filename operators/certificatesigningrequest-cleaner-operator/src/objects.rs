//! The view of a CertificateSigningRequest: when its conditions were written, and when its certificate expires.

use data_encoding::BASE64;
use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::api::time::Time;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawRequest")]
pub struct CertificateSigningRequest {
    pub metadata: Meta,
    /// Its conditions; as upstream, their status is not read.
    pub conditions: Box<[Condition]>,
    pub certificate: Certificate,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// One of those in [`shared::controllers::certificates`], or another one.
    #[serde(rename = "type")]
    pub type_: Text,
    /// When it was written; set by the apiserver if the writer did not.
    #[serde(default)]
    pub last_update_time: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    Missing,
    Until(Time),
    Unreadable,
}

shared::view!(CertificateSigningRequest, CERTIFICATE_SIGNING_REQUESTS);

#[derive(Deserialize)]
struct RawRequest {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Box<[Condition]>,
    #[serde(deserialize_with = "null_as_default")]
    certificate: String,
}

impl From<RawRequest> for CertificateSigningRequest {
    fn from(RawRequest { metadata, status }: RawRequest) -> Self {
        let RawStatus { conditions, certificate } = status;
        let certificate = match certificate.as_str() {
            "" => Certificate::Missing,
            some => end_of(some).map_or(Certificate::Unreadable, Certificate::Until),
        };
        Self { metadata, conditions, certificate }
    }
}

/// When the first certificate in this base64 of PEM expires.
///
/// Upstream: `isExpired`, `pkg/controller/certificates/cleaner/cleaner.go`.
fn end_of(certificate: &str) -> Option<Time> {
    let text = BASE64.decode(certificate.as_bytes()).ok()?;
    let (_, block) = parse_x509_pem(&text).ok()?;
    let (_, certificate) = parse_x509_certificate(&block.contents).ok()?;
    Some(Time::from_second(certificate.tbs_certificate.validity.not_after.timestamp()))
}
