//! Which CronJob is synced when an object changes.

use std::sync::Arc;

use shared::api::object::ControllerRef;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{CRON_JOBS, CronJob, Job};
use crate::observe::Caches;

/// Upstream: `updateCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
pub(super) fn cron_job_changed(change: Change<'_, CronJob>) -> Vec<Effect> {
    let is_edit = match change {
        Change::Added(_) | Change::Deleted(_) => false,
        Change::Updated { old, new } => old.metadata.generation != new.metadata.generation,
    };
    let cause = if is_edit { Cause::Edit } else { Cause::Event };
    vec![Effect::Enqueue(change.latest().metadata.key.clone(), cause)]
}

impl Caches {
    /// Wakes the CronJob of a Job; if its controller changes, both.
    ///
    /// Upstream: `addJob`, `updateJob` and `deleteJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
    pub(crate) fn job_changed(&self, change: Change<'_, Job>) -> Vec<Effect> {
        let before = match change {
            Change::Updated { old, new } if old.metadata.controller != new.metadata.controller => Some(old),
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => None,
        };
        before.into_iter().chain([change.latest()]).filter_map(|job| self.owner_of(job)).collect()
    }

    fn owner_of(&self, job: &Job) -> Option<Effect> {
        let is_cron_job = |controller: &&Arc<ControllerRef>| controller.kind == *CRON_JOBS.kind;
        let controller = job.metadata.controller.as_ref().filter(is_cron_job)?;
        let owner = self.cron_jobs.get_with_uid(job.metadata.namespace(), &controller.name, controller.uid)?;
        Some(Effect::Enqueue(owner.metadata.key.clone(), Cause::Event))
    }
}
