//! Which requests are a kubelet's for a client certificate, and the permissions of which one suffices to get it.
//!
//! Left out: requests for serving certificates. Nothing tells whether the names in them are the node's, so a person or
//! another controller approves them.
//!
//! Upstream: `recognizers`, `pkg/controller/certificates/approver/sarapprove.go`.

use serde::Serialize;
use shared::api::intern::Text;
use shared::controllers::certificates::kubelet::{Asked, Mismatch};

use super::Reason;
use crate::objects::{CertificateSigningRequest, Content, KUBELET_CLIENT_SIGNER, State, Undecided};

/// The right to create a subresource of CertificateSigningRequests that does not exist: it stands for the right to a
/// certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// To a certificate of one's own node.
    SelfNodeClient,
    /// To a certificate of any node.
    NodeClient,
}

impl Permission {
    /// The subresource.
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

/// A request that is approved if its requester has one of these permissions.
#[derive(Debug, PartialEq)]
pub struct Recognized<'a> {
    /// The request.
    pub undecided: &'a Undecided,
    /// In the order in which the apiserver is asked for them.
    pub permissions: Vec<Permission>,
}

/// Recognizes a request, or says why there is nothing to do.
///
/// Upstream: `isSelfNodeClientCert` and `isNodeClientCert`.
pub fn recognize(request: &CertificateSigningRequest) -> Result<Recognized<'_>, Reason> {
    let undecided = match &request.state {
        State::Issued => return Err(Reason::Issued),
        State::Approved => return Err(Reason::Approved),
        State::Denied => return Err(Reason::Denied),
        State::Undecided(undecided) => undecided,
    };
    if undecided.signer != *KUBELET_CLIENT_SIGNER {
        return Err(Reason::OtherSigner);
    }
    let content = undecided.content.as_ref().map_err(|fault| Reason::Unreadable { fault: *fault })?;
    if let Some(mismatch) = mismatch(content, &undecided.usages) {
        return Err(Reason::NotKubelets { mismatch });
    }
    let is_self = undecided.requester.username == *content.common_name;
    let own = is_self.then_some(Permission::SelfNodeClient);
    Ok(Recognized { undecided, permissions: own.into_iter().chain([Permission::NodeClient]).collect() })
}

fn mismatch(content: &Content, usages: &[Text]) -> Option<Mismatch> {
    let Content { common_name, organizations, alt_names } = content;
    let asked = Asked {
        common_name,
        organizations: organizations.iter().map(String::as_str).collect(),
        alt_names: alt_names.clone(),
        usages: usages.iter().map(Text::as_str).collect(),
    };
    asked.client_mismatch()
}
