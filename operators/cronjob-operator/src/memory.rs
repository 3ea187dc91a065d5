//! When schedules were edited, as this process saw it: a new schedule is not due for times before its edit.
//!
//! Edits while no replica ran are unknown, because a CronJob does not say when its schedule was set.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::object::Uid;
use shared::following::cache::Change;

use crate::objects::CronJob;

/// The last edit of each schedule that was edited since this process started.
#[derive(Default)]
pub struct Edits(Mutex<HashMap<Uid, Timestamp>>);

impl Edits {
    pub fn note(&self, change: &Change<'_, CronJob>, now: Timestamp) {
        match change {
            Change::Updated { old, new } if is_rescheduled(old, new) => {
                self.times().insert(new.metadata.uid, now);
            }
            Change::Added(_) | Change::Updated { .. } => {}
            Change::Deleted(cron_job) => {
                self.times().remove(&cron_job.metadata.uid);
            }
        }
    }

    /// When the schedule of this CronJob was last edited, if this process saw it.
    pub fn last(&self, uid: Uid) -> Option<Timestamp> {
        self.times().get(&uid).copied()
    }

    fn times(&self) -> MutexGuard<'_, HashMap<Uid, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the same CronJob has another schedule.
fn is_rescheduled(old: &CronJob, new: &CronJob) -> bool {
    let same = old.metadata.uid == new.metadata.uid;
    same && (old.spec.schedule != new.spec.schedule || old.spec.time_zone != new.spec.time_zone)
}
