//! Which requests a signer signs.
//!
//! Left out: the names in a request for a serving certificate. Who approves it has to know the node's.
//!
//! Upstream: `getCSRVerificationFuncForSignerName`, `pkg/controller/certificates/signer/signer.go`.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::controllers::certificates::kubelet::{Asked, Mismatch};
use shared::controllers::certificates::request::{Attribute, Request};

use crate::objects::Signer;

const CLIENT_AUTH: &str = "client auth";
/// The usages that a client certificate may have besides.
const OTHER_CLIENT_USAGES: [&str; 2] = ["digital signature", "key encipherment"];

/// The first difference between a request and those that its signer signs, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Invalid {
    /// It is not as a kubelet's.
    NotKubelets {
        mismatch: Mismatch,
    },
    Usage {
        usage: Text,
    },
    NoClientAuth,
}

/// Why the signer does not sign this request, if it doesn't.
pub fn verify(signer: Signer, request: &Request, usages: &[Text]) -> Option<Invalid> {
    let asked = || Asked {
        // Of several, Go takes the last one.
        common_name: request.values(Attribute::CommonName).last().unwrap_or_default(),
        organizations: request.values(Attribute::Organization).collect(),
        alt_names: request.alt_names.sorts(),
        usages: usages.iter().map(Text::as_str).collect(),
    };
    let not_kubelets = |mismatch| Invalid::NotKubelets { mismatch };
    match signer {
        Signer::KubeletServing => asked().serving_mismatch().map(not_kubelets),
        Signer::KubeletClient => asked().client_mismatch().map(not_kubelets),
        Signer::KubeApiserverClient => verify_client_usages(usages),
        Signer::LegacyUnknown => None,
    }
}

/// Upstream: `validAPIServerClientUsages`.
fn verify_client_usages(usages: &[Text]) -> Option<Invalid> {
    let is_allowed = |usage: &Text| *usage == *CLIENT_AUTH || OTHER_CLIENT_USAGES.contains(&usage.as_str());
    if let Some(usage) = usages.iter().find(|usage| !is_allowed(usage)) {
        return Some(Invalid::Usage { usage: usage.clone() });
    }
    let is_for_clients = usages.iter().any(|usage| *usage == *CLIENT_AUTH);
    (!is_for_clients).then_some(Invalid::NoClientAuth)
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotKubelets { mismatch } => write!(f, "{mismatch}"),
            Self::Usage { usage } => write!(f, "invalid usage for client certificate: {usage}"),
            Self::NoClientAuth => write!(f, "missing required usage for client certificate: {CLIENT_AUTH}"),
        }
    }
}
