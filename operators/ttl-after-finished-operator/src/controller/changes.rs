//! Which Job is synced when one changes.
//!
//! Left out: deleted Jobs, and those that have nothing to wait for.

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::Job;
use crate::observe::Caches;
use crate::plan::is_of_interest;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// Upstream: `addJob` and `updateJob`, `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`.
    pub(crate) fn job_changed(&self, change: Change<'_, Job>) -> Vec<Effect> {
        let job = change.existing().filter(|job| is_of_interest(job));
        job.map(|job| Effect::Enqueue(job.metadata.key.clone(), Cause::Event)).into_iter().collect()
    }
}
