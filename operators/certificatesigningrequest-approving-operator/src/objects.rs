//! The view of a CertificateSigningRequest: what it asks for, and who asks, as long as nobody has decided.
//!
//! The content of a request is read once, when the request is. Of a decided one only that is kept.
//! Left out: requests to other signers, which the informer does not follow.

mod content;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::controllers::certificates::{APPROVED, DENIED};

pub use content::Content;
pub use shared::controllers::certificates::request::{AltName, Fault};

/// The signer of kubelets' client certificates. Upstream: `KubeAPIServerClientKubeletSignerName`.
pub const KUBELET_CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The field selector of the requests to that signer.
pub const TO_KUBELET_CLIENT_SIGNER: &str = "spec.signerName=kubernetes.io/kube-apiserver-client-kubelet";

/// A request.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawRequest")]
pub struct CertificateSigningRequest {
    /// Its metadata.
    pub metadata: Meta,
    /// How far it has come.
    pub state: State,
}

/// How far a request has come.
#[derive(Debug, PartialEq)]
pub enum State {
    /// It has its certificate.
    Issued,
    /// Somebody has approved it.
    Approved,
    /// Somebody has denied it.
    Denied,
    /// Nobody has decided on it.
    Undecided(Box<Undecided>),
}

/// A request on which nobody has decided.
#[derive(Debug, PartialEq)]
pub struct Undecided {
    /// The signer that is to sign it.
    pub signer: Text,
    /// The usages of the certificate.
    pub usages: Box<[Text]>,
    /// The user who asks.
    pub requester: Requester,
    /// The content of the request proper, or why it cannot be read.
    pub content: Result<Content, Fault>,
    /// The conditions that it has, as they were served.
    pub conditions: Box<[Value]>,
}

/// The user who has made a request, as the apiserver has noted it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requester {
    /// The name.
    pub username: Text,
    /// The uid, which few users have.
    pub uid: Text,
    /// The groups.
    pub groups: Box<[Text]>,
    /// All else that the authenticator has said, by its key.
    pub extra: Box<[(Text, Box<[Text]>)]>,
}

shared::view!(CertificateSigningRequest, CERTIFICATE_SIGNING_REQUESTS);

#[derive(Deserialize)]
struct RawRequest {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    request: String,
    #[serde(deserialize_with = "null_as_default")]
    signer_name: Text,
    #[serde(deserialize_with = "null_as_default")]
    usages: Box<[Text]>,
    #[serde(deserialize_with = "null_as_default")]
    username: Text,
    #[serde(deserialize_with = "null_as_default")]
    uid: Text,
    #[serde(deserialize_with = "null_as_default")]
    groups: Box<[Text]>,
    #[serde(deserialize_with = "null_as_default")]
    extra: BTreeMap<Text, Box<[Text]>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Box<[Value]>,
    #[serde(deserialize_with = "null_as_default")]
    certificate: String,
}

/// Upstream: `GetCertApprovalCondition`, `pkg/controller/certificates/certificate_controller_utils.go`.
impl From<RawRequest> for CertificateSigningRequest {
    fn from(RawRequest { metadata, spec, status }: RawRequest) -> Self {
        let RawStatus { conditions, certificate } = status;
        let is = |type_: &str| conditions.iter().any(|condition| condition["type"] == *type_);
        let state = if !certificate.is_empty() {
            State::Issued
        } else if is(DENIED) {
            State::Denied
        } else if is(APPROVED) {
            State::Approved
        } else {
            State::Undecided(Box::new(Undecided::new(spec, conditions)))
        };
        Self { metadata, state }
    }
}

impl Undecided {
    fn new(spec: RawSpec, conditions: Box<[Value]>) -> Self {
        let RawSpec { request, signer_name, usages, username, uid, groups, extra } = spec;
        let requester = Requester { username, uid, groups, extra: extra.into_iter().collect() };
        Self { signer: signer_name, usages, requester, content: Content::read(&request), conditions }
    }
}
