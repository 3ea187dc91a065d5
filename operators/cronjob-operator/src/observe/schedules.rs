//! Which schedule the last sync of each CronJob went by, so that the next one sees that it has changed.
//!
//! Left out: schedules from before the process began to work. As upstream, it then takes what it finds.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};

use crate::objects::CronJob;

/// What is remembered of each CronJob.
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    by_key: Mutex<BTreeMap<Key, Known>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Known {
    uid: Uid,
    schedule: Box<str>,
    time_zone: Option<Box<str>>,
}

impl Known {
    fn of(cron_job: &CronJob) -> Self {
        let spec = &cron_job.spec;
        Self { uid: cron_job.metadata.uid, schedule: spec.schedule.clone(), time_zone: spec.time_zone.clone() }
    }
}

impl Schedules {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Known>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this very CronJob had another schedule, or another time zone.
    pub(crate) fn have_changed(&self, cron_job: &CronJob) -> bool {
        let now = Known::of(cron_job);
        self.lock().get(&cron_job.metadata.key).is_some_and(|known| known.uid == now.uid && *known != now)
    }

    /// Remembers the schedule that this CronJob has.
    pub(crate) fn remember(&self, cron_job: &CronJob) {
        self.lock().insert(cron_job.metadata.key.clone(), Known::of(cron_job));
    }

    /// A CronJob is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::testing::object;

    #[test]
    fn a_schedule_has_changed_once_another_is_remembered_of_the_same_cron_job() {
        let schedules = Schedules::default();
        let cron_job = |schedule: &str| object("batch/v1", "CronJob", "c").set(&["spec", "schedule"], schedule);
        let differs = |state: &shared::testing::ObjectBuilder| schedules.have_changed(&state.build::<CronJob>());
        let hourly = cron_job("0 * * * *");
        assert!(!differs(&hourly), "nothing is remembered");
        schedules.remember(&hourly.build::<CronJob>());
        assert!(!differs(&hourly));
        assert!(differs(&cron_job("1 * * * *")));
        assert!(differs(&hourly.clone().set(&["spec", "timeZone"], "Etc/UTC")));
        assert!(!differs(&cron_job("1 * * * *").uid_of("another")), "one of the same name has no schedule before");
        let of_last = hourly.build::<CronJob>();
        schedules.forget(&of_last.metadata.key);
        assert!(!differs(&cron_job("1 * * * *")));
    }
}
