//! Which Job is synced when one changes: only one that has a time to live and is finished.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Job;
use crate::plan::needs_cleanup;

/// Upstream: `addJob` and `updateJob`, `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`.
pub(super) fn job_changed(change: Change<'_, Job>) -> Vec<Effect> {
    let job = change.existing().filter(|job| needs_cleanup(job));
    job.map(|job| Effect::Enqueue(job.metadata.key.clone(), Cause::Event)).into_iter().collect()
}
