//! Which request is synced when one changes: one that has an end to wait for.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::CertificateSigningRequest;
use crate::plan::end;

/// A change may bring the end forward. If it postpones the end, the earlier timer finds nothing to do.
pub(super) fn request_changed(change: Change<'_, CertificateSigningRequest>) -> Vec<Effect> {
    let request = change.existing().filter(|request| !request.metadata.is_being_deleted());
    let request = request.filter(|request| end(request).is_some());
    request.map(|request| Effect::Enqueue(request.metadata.key.clone(), Cause::Event)).into_iter().collect()
}
