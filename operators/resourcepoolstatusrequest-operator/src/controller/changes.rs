//! Every new request leads to a sync, and so does its answer, which ends after a time.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::ResourcePoolStatusRequest;

/// Upstream: `enqueueRequest`, `pkg/controller/resourcepoolstatusrequest/controller.go`.
pub(super) fn request_changed(change: Change<'_, ResourcePoolStatusRequest>) -> Vec<Effect> {
    let existing = change.existing();
    existing.map(|request| Effect::Enqueue(request.metadata.key.clone(), Cause::Event)).into_iter().collect()
}
