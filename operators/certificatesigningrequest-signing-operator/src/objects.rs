//! The view of a CertificateSigningRequest: its state, and its content from the approval until the certificate.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::api::condition::TRUE;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::controllers::certificates::{APPROVED, DENIED, FAILED};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Signer {
    KubeletServing,
    KubeletClient,
    KubeApiserverClient,
    LegacyUnknown,
}

impl Signer {
    /// All of them, in upstream's order.
    pub const ALL: [Self; 4] =
        [Self::KubeletServing, Self::KubeletClient, Self::KubeApiserverClient, Self::LegacyUnknown];

    /// The name. Upstream: staging/src/k8s.io/api/certificates/v1/types.go and v1beta1/defaults.go.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KubeletServing => "kubernetes.io/kubelet-serving",
            Self::KubeletClient => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::KubeApiserverClient => "kubernetes.io/kube-apiserver-client",
            Self::LegacyUnknown => "kubernetes.io/legacy-unknown",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signer| signer.name() == name)
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawRequest")]
pub struct CertificateSigningRequest {
    pub metadata: Meta,
    pub state: State,
}

#[derive(Debug, PartialEq)]
pub enum State {
    Issued,
    NotApproved,
    Denied,
    /// It could not be signed.
    Failed,
    OtherSigner,
    Approved(Box<Approved>),
}

#[derive(Debug, PartialEq)]
pub struct Approved {
    pub signer: Signer,
    /// The request proper: PEM, in base64.
    pub request: Box<str>,
    pub usages: Box<[Text]>,
    pub expiration_seconds: Option<i32>,
    pub conditions: Box<[Value]>,
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
    expiration_seconds: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Box<[Value]>,
    #[serde(deserialize_with = "null_as_default")]
    certificate: String,
}

/// Upstream: `IsCertificateRequestApproved` and `HasTrueCondition`,
/// `pkg/controller/certificates/certificate_controller_utils.go`.
impl From<RawRequest> for CertificateSigningRequest {
    fn from(RawRequest { metadata, spec, status }: RawRequest) -> Self {
        let RawSpec { request, signer_name, usages, expiration_seconds } = spec;
        let RawStatus { conditions, certificate } = status;
        let is = |type_: &str| conditions.iter().any(|condition| condition["type"] == *type_);
        let is_true = |status: &Value| status.as_str().is_none_or(|status| status.is_empty() || status == TRUE);
        let has_failed =
            conditions.iter().any(|condition| condition["type"] == *FAILED && is_true(&condition["status"]));
        let state = if !certificate.is_empty() {
            State::Issued
        } else if is(DENIED) {
            State::Denied
        } else if !is(APPROVED) {
            State::NotApproved
        } else if has_failed {
            State::Failed
        } else if let Some(signer) = Signer::of(&signer_name) {
            let request = request.into();
            State::Approved(Box::new(Approved { signer, request, usages, expiration_seconds, conditions }))
        } else {
            State::OtherSigner
        };
        Self { metadata, state }
    }
}
