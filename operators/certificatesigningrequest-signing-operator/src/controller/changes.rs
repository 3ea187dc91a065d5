//! Which request is synced when one changes: one that is approved and not signed yet.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{CertificateSigningRequest, State};

/// Upstream: `NewCertificateController`, `pkg/controller/certificates/certificate_controller.go`.
pub(super) fn request_changed(change: Change<'_, CertificateSigningRequest>) -> Vec<Effect> {
    let approved = change.existing().filter(|request| matches!(request.state, State::Approved(_)));
    approved.map(|request| Effect::Enqueue(request.metadata.key.clone(), Cause::Event)).into_iter().collect()
}
