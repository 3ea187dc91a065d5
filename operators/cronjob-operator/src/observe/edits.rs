//! When a schedule was edited under this process: no time before that is due by the new schedule.
//!
//! Left out: edits while no replica ran. A CronJob does not say when its schedule was set.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::object::Uid;
use shared::runtime::cache::Change;

use crate::objects::CronJob;

/// The CronJobs whose schedule has changed since this process follows them, and when it last did.
#[derive(Default)]
pub struct Edits(Mutex<HashMap<Uid, Timestamp>>);

impl Edits {
    /// Takes in what was seen at `now`.
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

    /// When the schedule of this CronJob was last edited, if it was seen.
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
