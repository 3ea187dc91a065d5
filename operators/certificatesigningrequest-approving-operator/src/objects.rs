//! The view of a CertificateSigningRequest: while it is undecided, what it asks for and who asks.

mod content;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
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

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawRequest")]
pub struct CertificateSigningRequest {
    pub metadata: Meta,
    pub state: State,
}

#[derive(Debug, PartialEq)]
pub enum State {
    Issued,
    Approved,
    Denied,
    Undecided(Box<Undecided>),
}

/// A request that is neither approved nor denied.
#[derive(Debug, PartialEq)]
pub struct Undecided {
    pub signer: Text,
    pub usages: Box<[Text]>,
    pub requester: Requester,
    /// The content of its `spec.request`, or why that cannot be read.
    pub content: Result<Content, Fault>,
    pub conditions: Box<[Value]>,
}

/// The user who created a request, as the apiserver recorded it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requester {
    pub username: Text,
    /// Its uid; `""` for most users.
    pub uid: Text,
    pub groups: Box<[Text]>,
    /// The extra fields of the authenticator, by key.
    pub extra: Box<[(Text, Box<[Text]>)]>,
}

shared::view!(CertificateSigningRequest, CERTIFICATE_SIGNING_REQUESTS);

/// The right to create a subresource of CertificateSigningRequests that does not exist. It stands for the right to a
/// certificate.
///
/// Upstream: `recognizers`, `pkg/controller/certificates/approver/sarapprove.go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    SelfNodeClient,
    NodeClient,
}

impl Permission {
    pub const fn subresource(self) -> &'static str {
        match self {
            Self::SelfNodeClient => "selfnodeclient",
            Self::NodeClient => "nodeclient",
        }
    }

    /// The message of an approval. Upstream: `successMessage`.
    pub const fn message(self) -> &'static str {
        match self {
            Self::SelfNodeClient => "Auto approving self kubelet client certificate after SubjectAccessReview.",
            Self::NodeClient => "Auto approving kubelet client certificate after SubjectAccessReview.",
        }
    }
}

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
