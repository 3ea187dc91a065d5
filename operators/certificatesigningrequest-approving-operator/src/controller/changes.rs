//! Which request is synced when one changes.
//!
//! Left out: deleted requests, and those on which somebody has decided.

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::{CertificateSigningRequest, State};
use crate::observe::Caches;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// Upstream: `NewCertificateController`, `pkg/controller/certificates/certificate_controller.go`.
    pub(crate) fn request_changed(&self, change: Change<'_, CertificateSigningRequest>) -> Vec<Effect> {
        let undecided = change.existing().filter(|request| matches!(request.state, State::Undecided(_)));
        undecided.map(|request| Effect::Enqueue(request.metadata.key.clone(), Cause::Event)).into_iter().collect()
    }
}
