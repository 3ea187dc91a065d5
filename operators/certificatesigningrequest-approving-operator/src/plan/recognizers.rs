//! The requests of kubelets for client certificates, and the permissions of which one suffices.
//!
//! Upstream: `recognizers`, `pkg/controller/certificates/approver/sarapprove.go`.

use shared::api::intern::Text;
use shared::controllers::certificates::kubelet::{Asked, Mismatch};

use super::Reason;
use crate::objects::{CertificateSigningRequest, Content, KUBELET_CLIENT_SIGNER, Permission, State, Undecided};

/// A request that is approved if its requester has one of these permissions.
#[derive(Debug, PartialEq)]
pub(super) struct Recognized<'a> {
    pub(super) undecided: &'a Undecided,
    pub(super) permissions: Vec<Permission>,
}

/// Recognizes a request, or gives the reason to write nothing.
///
/// Upstream: `isSelfNodeClientCert` and `isNodeClientCert`.
pub(super) fn recognize(request: &CertificateSigningRequest) -> Result<Recognized<'_>, Reason> {
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
