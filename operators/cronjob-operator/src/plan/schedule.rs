//! The run that is due, how many were missed, and the time until the next one.
//!
//! Upstream: `pkg/controller/cronjob/utils.go`, `cronjob_controllerv2.go`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::cron::{InvalidCron, Schedule, UnknownTimeZone, load_zone, parse};
use crate::objects::CronJob;

/// A delay, so that a sync is not early.
///
/// Upstream: `nextScheduleDelta`.
const PAD: SignedDuration = SignedDuration::from_millis(100);

/// The most missed times that count as few.
const FEW: i64 = 100;

/// How many times were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Missed {
    /// None, or only the one that is due.
    None,
    Few,
    /// More than a hundred.
    Many,
}

/// Two times of the schedule are less than a second apart, or there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub struct NeverDue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub time: Option<Timestamp>,
    /// The times before it.
    pub missed: Missed,
}

/// The schedule in the CronJob's time zone, or in the zone that the schedule itself names.
///
/// Upstream: `formatSchedule`.
pub fn read(cron_job: &CronJob) -> Result<Schedule, InvalidCron> {
    let schedule = &*cron_job.spec.schedule;
    match &cron_job.spec.time_zone {
        Some(zone) if !names_zone(schedule) && load_zone(zone).is_ok() => parse(&format!("TZ={zone} {schedule}")),
        Some(_) | None => parse(schedule),
    }
}

/// Whether the schedule names a time zone itself, which works, but is not supported.
pub fn names_zone(schedule: &str) -> bool {
    schedule.contains("TZ")
}

pub fn check_zone(cron_job: &CronJob) -> Result<(), UnknownTimeZone> {
    cron_job.spec.time_zone.as_deref().map_or(Ok(()), |zone| load_zone(zone).map(drop))
}

/// The time after which runs count: the last started run or the creation, and not before the schedule was edited.
/// Upstream starts a run that the new schedule would have had before the edit. This does too if the clock was set back
/// since the edit, whose time is then unknown.
pub fn since(cron_job: &CronJob, edited_at: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let last = cron_job.status.last_schedule_time.or(cron_job.metadata.creation);
    let last = last.map_or(Timestamp::UNIX_EPOCH, shared::api::time::Time::timestamp);
    edited_at.filter(|edited_at| *edited_at <= now).map_or(last, |edited_at| edited_at.max(last))
}

/// As [`since`], limited by the starting deadline.
pub fn since_in_time(cron_job: &CronJob, edited_at: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let since = since(cron_job, edited_at, now);
    let Some(seconds) = cron_job.spec.starting_deadline_seconds else { return since };
    now.checked_sub(SignedDuration::from_secs(seconds)).map_or(since, |deadline| deadline.max(since))
}

/// The latest past time after `since`.
///
/// As upstream, the number of missed times is estimated from the first two. The search starts from that estimate and
/// may find no time if the times are irregular.
///
/// Upstream: `mostRecentScheduleTime`.
pub fn most_recent(schedule: &Schedule, since: Timestamp, now: Timestamp) -> Result<Due, NeverDue> {
    let first = schedule.next(since).ok_or(NeverDue)?;
    if now < first {
        return Ok(Due { time: None, missed: Missed::None });
    }
    let second = schedule.next(first).ok_or(NeverDue)?;
    if now < second {
        return Ok(Due { time: Some(first), missed: Missed::None });
    }
    let gap = first.duration_until(second).as_secs();
    if gap < 1 {
        return Err(NeverDue);
    }
    let missed = first.duration_until(now).as_secs() / gap + 1;
    // Two gaps before now, because the next time of an irregular schedule may be less than a gap away.
    let start = first.checked_add(SignedDuration::from_secs((missed - 2).saturating_mul(gap))).unwrap_or(first);
    let mut time = None;
    let mut next = schedule.next(start);
    while let Some(candidate) = next.filter(|candidate| *candidate <= now) {
        time = Some(candidate);
        next = schedule.next(candidate);
    }
    Ok(Due { time, missed: if missed > FEW { Missed::Many } else { Missed::Few } })
}

/// The time after the latest, if there is one.
pub fn next_time(schedule: &Schedule, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let base = match most_recent(schedule, since, now) {
        Ok(Due { time: Some(time), .. }) => time,
        Ok(Due { time: None, missed: Missed::None }) => since,
        Ok(Due { time: None, missed: Missed::Few | Missed::Many }) | Err(NeverDue) => now,
    };
    schedule.next(base)
}

/// How long until the time after the latest, if there is one.
///
/// Upstream: `nextScheduleTimeDuration`.
pub fn next_delay(schedule: &Schedule, since: Timestamp, now: Timestamp) -> Option<Duration> {
    let delay = now.duration_until(next_time(schedule, since, now)?).saturating_add(PAD);
    Some(Duration::try_from(delay).unwrap_or(Duration::ZERO))
}
