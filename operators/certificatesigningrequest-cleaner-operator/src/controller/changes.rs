//! Which request is synced when one changes.
//!
//! Left out: deleted requests, and those that have no end to wait for.

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::CertificateSigningRequest;
use crate::observe::Caches;
use crate::plan::end;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// A decision may bring the end nearer. If it moves the end away, the timer of the former end only looks.
    pub(crate) fn request_changed(&self, change: Change<'_, CertificateSigningRequest>) -> Vec<Effect> {
        let request = change.existing().filter(|request| !request.metadata.is_being_deleted());
        let request = request.filter(|request| end(request).is_some());
        request.map(|request| Effect::Enqueue(request.metadata.key.clone(), Cause::Event)).into_iter().collect()
    }
}
