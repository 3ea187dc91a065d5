//! Which Jobs of a CronJob are started and deleted. At most one is started, for the latest time that is due.
//!
//! Left out: upstream's warning `MissSchedule`, which its code cannot reach, because a time beyond the deadline is not
//! due.
//!
//! Upstream: `syncCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.

pub mod cron;
mod history;
pub mod job;
pub mod reasons;
pub mod schedule;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::{Key, Kind, Uid};
use shared::api::time::Time;
use shared::controllers::live_spec::{NotCached, read_spec};
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, LiveRead, Reasoned};
use shared::working::events::PlannedEvent;

use self::reasons::Reason;
use crate::objects::{ConcurrencyPolicy, CronJob, Ended, Job, JobReference, events};
use crate::observe::Observed;
use cron::{InvalidCron, Schedule};
use schedule::{Due, Missed, NeverDue};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub cleanup: Vec<Deletion>,
    /// The Jobs to remove from the list of active ones.
    pub leave: Vec<Leave>,
    /// The events, except for those of the writes.
    pub notices: Vec<PlannedEvent>,
    pub run: Run,
    pub reason: Reason,
    /// When to sync again; none if only a change can make a difference.
    pub next: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub key: Key,
    pub uid: Uid,
}

impl Deletion {
    fn of(job: &Job) -> Self {
        Self { key: job.metadata.key.clone(), uid: job.metadata.uid }
    }
}

/// A Job to remove from the list of active ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leave {
    pub uid: Uid,
    pub name: Box<str>,
    pub why: Left,
}

/// Why a Job is no longer active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Left {
    Ended { condition: Ended },
    Missing,
}

/// The Job to start, if one is due.
#[derive(Clone, Debug, PartialEq)]
pub enum Run {
    Start(Start),
    Nothing,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub due: Timestamp,
    /// Its name, which makes it unique for its time.
    pub name: String,
    pub body: String,
    /// The Jobs to delete first.
    pub replace: Vec<Deletion>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unknown {
    /// Which Jobs are active: the status and the cache of Jobs differ.
    Active {
        /// The running Jobs that the status does not list.
        unlisted: Vec<Text>,
        /// The listed Jobs that are not cached.
        missing: Vec<Text>,
    },
}

/// Plans a live read if the status and the cache of Jobs differ.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Unknown>> {
    let is_unlisted = |job: &&Arc<Job>| job.ended.is_none() && !observed.cron_job.has_active(job.metadata.uid);
    let is_missing = |active: &&JobReference| observed.jobs.iter().all(|job| job.metadata.uid != active.uid);
    let unlisted: Vec<Text> = observed.owned().filter(is_unlisted).map(|job| Text::new(job.metadata.name())).collect();
    let active = observed.cron_job.status.active.iter();
    let missing: Vec<Text> = active.filter(is_missing).map(|job| Text::new(&job.name)).collect();
    let differ = !unlisted.is_empty() || !missing.is_empty();
    differ.then_some(LiveRead { step: "read live", reason: Unknown::Active { unlisted, missing } })
}

/// Plans to read the job template if a run is due and the cache has no room for the template.
pub fn plan_template_read(observed: &Observed, now: Timestamp) -> Option<LiveRead<NotCached>> {
    let live_read = read_spec(&*observed.cron_job)?;
    matches!(plan(observed, now).reason, Reason::LargeTemplate { due: _ }).then_some(live_read)
}

pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let cleanup = history::surplus(observed);
    let leave = plan_leave(observed);
    let mut notices = unexpected(observed);
    let Decided { run, reason, next } = plan_run(observed, &leave, now, &mut notices);
    Plan { cleanup, leave, notices, run, reason, next }
}

fn warning(cron_job: &CronJob, reason: &'static str, message: String) -> PlannedEvent {
    PlannedEvent::warning(cron_job.reference(), reason, message)
}

/// An edited schedule has another event: upstream's `updateCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
fn unparseable(observed: &Observed, schedule: &str, error: &InvalidCron) -> PlannedEvent {
    if observed.edited_at.is_some() {
        let message = format!("unparseable schedule for cronjob: {schedule}");
        return warning(&observed.cron_job, events::UNPARSEABLE_NEW_SCHEDULE, message);
    }
    let message = format!("unparseable schedule: {schedule:?} : {error}");
    warning(&observed.cron_job, events::UNPARSEABLE_SCHEDULE, message)
}

fn plan_leave(observed: &Observed) -> Vec<Leave> {
    let why = |uid: Uid| {
        if observed.missing.contains(&uid) {
            return Some(Left::Missing);
        }
        observed.jobs.iter().find(|job| job.metadata.uid == uid)?.ended.map(|condition| Left::Ended { condition })
    };
    let active = observed.cron_job.status.active.iter();
    active.filter_map(|job| Some(Leave { uid: job.uid, name: job.name.clone(), why: why(job.uid)? })).collect()
}

fn unexpected(observed: &Observed) -> Vec<PlannedEvent> {
    let is_unexpected = |job: &&Arc<Job>| job.ended.is_none() && !observed.cron_job.has_active(job.metadata.uid);
    let text = |name: &str| format!("Saw a job that the controller did not create or forgot: {name}");
    let jobs = observed.jobs.iter().filter(is_unexpected);
    jobs.map(|job| warning(&observed.cron_job, events::UNEXPECTED_JOB, text(job.metadata.name()))).collect()
}

/// The decision on a run, its reason, and when to sync again.
struct Decided {
    run: Run,
    reason: Reason,
    next: Option<Duration>,
}

impl Decided {
    fn idle(reason: Reason) -> Self {
        Self { run: Run::Nothing, reason, next: None }
    }
}

fn plan_run(observed: &Observed, leave: &[Leave], now: Timestamp, notices: &mut Vec<PlannedEvent>) -> Decided {
    let cron_job = &*observed.cron_job;
    if cron_job.metadata.is_being_deleted() {
        return Decided::idle(Reason::BeingDeleted);
    }
    if let Err(error) = schedule::check_zone(cron_job) {
        let zone = cron_job.spec.time_zone.as_deref().unwrap_or_default();
        let message = format!("invalid timeZone: {zone:?}: {error}");
        notices.push(warning(cron_job, events::UNKNOWN_TIME_ZONE, message));
        return Decided::idle(Reason::UnknownTimeZone { zone: Text::new(zone) });
    }
    if cron_job.spec.suspend == Some(true) {
        return Decided::idle(Reason::Suspended);
    }
    let text = &*cron_job.spec.schedule;
    if schedule::names_zone(text) {
        let message = format!(
            "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        );
        notices.push(warning(cron_job, events::UNSUPPORTED_SCHEDULE, message));
    }
    let schedule = match schedule::read(cron_job) {
        Ok(schedule) => schedule,
        Err(error) => {
            notices.push(unparseable(observed, text, &error));
            return Decided::idle(Reason::Unparseable { schedule: Text::new(text), error: error.to_string() });
        }
    };
    let in_time = schedule::since_in_time(cron_job, observed.edited_at, now);
    let Ok(Due { time, missed }) = schedule::most_recent(&schedule, in_time, now) else {
        notices.push(warning(cron_job, events::INVALID_SCHEDULE, format!("invalid schedule: {text} : {NeverDue}")));
        return Decided::idle(Reason::NeverDue { schedule: Text::new(text) });
    };
    let since = schedule::since(cron_job, observed.edited_at, now);
    let (run, reason) = match time {
        Some(due) => plan_due(cron_job, &active_after(cron_job, leave), due, missed, notices),
        None => (Run::Nothing, not_due(cron_job, &schedule, since, now)),
    };
    let since = match &run {
        Run::Start(start) => start.due,
        Run::Nothing => since,
    };
    Decided { run, reason, next: schedule::next_delay(&schedule, since, now) }
}

/// Why nothing is due: nothing was yet, or it is too late.
fn not_due(cron_job: &CronJob, schedule: &Schedule, since: Timestamp, now: Timestamp) -> Reason {
    let next = schedule::next_time(schedule, since, now);
    let was_due = schedule::most_recent(schedule, since, now).ok().and_then(|due| due.time);
    match (was_due, cron_job.spec.starting_deadline_seconds) {
        (Some(due), Some(deadline_seconds)) => Reason::TooLate { due, deadline_seconds, next },
        (Some(_), None) | (None, _) => Reason::NotDue { next },
    }
}

fn active_after<'a>(cron_job: &'a CronJob, leave: &[Leave]) -> Vec<&'a JobReference> {
    let left: BTreeSet<Uid> = leave.iter().map(|leave| leave.uid).collect();
    cron_job.status.active.iter().filter(|job| !left.contains(&job.uid)).collect()
}

fn plan_due(
    cron_job: &CronJob,
    active: &[&JobReference],
    due: Timestamp,
    missed: Missed,
    notices: &mut Vec<PlannedEvent>,
) -> (Run, Reason) {
    if missed == Missed::Many {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        notices.push(warning(cron_job, events::TOO_MANY_MISSED_TIMES, message.to_owned()));
    }
    let name = job::name(cron_job, due);
    let namespace = cron_job.metadata.namespace();
    let is_active = active.iter().any(|job| job.namespace == *namespace && *job.name == *name);
    if is_active || cron_job.status.last_schedule_time.map(Time::timestamp) == Some(due) {
        return (Run::Nothing, Reason::Started { due });
    }
    let policy = cron_job.spec.concurrency_policy;
    if policy == ConcurrencyPolicy::Forbid && !active.is_empty() {
        let message = "Not starting job because prior execution is running and concurrency policy is Forbid".to_owned();
        notices.push(PlannedEvent::normal(cron_job.reference(), events::JOB_ALREADY_ACTIVE, message));
        return (Run::Nothing, Reason::Forbidden { due, active: names(active) });
    }
    let Some(template) = cron_job.spec.job_template.whole() else {
        return (Run::Nothing, Reason::LargeTemplate { due });
    };
    let body = match job::body(cron_job, template, due) {
        Ok(body) => body,
        Err(invalid) => {
            notices.push(warning(cron_job, events::FAILED_CREATE, format!("Error creating job: {invalid}")));
            return (Run::Nothing, Reason::InvalidTemplate { due, error: invalid.to_string() });
        }
    };
    let replaced = if policy == ConcurrencyPolicy::Replace { active } else { &[] };
    let replace = replaced.iter().map(|job| Deletion { key: job.key(), uid: job.uid }).collect();
    let reason = Reason::Due { due, missed, replaced: names(replaced) };
    (Run::Start(Start { due, name, body, replace }), reason)
}

fn names(jobs: &[&JobReference]) -> Vec<Box<str>> {
    jobs.iter().map(|job| job.name.clone()).collect()
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cleanup, leave, notices, run, reason, next } = self;
        for deletion in cleanup {
            write!(f, "delete {} (history limit); ", deletion.key.name())?;
        }
        for Leave { name, why, uid: _ } in leave {
            match why {
                Left::Ended { condition } => write!(f, "{name} is over ({condition}); ")?,
                Left::Missing => write!(f, "{name} is missing; ")?,
            }
        }
        for notice in notices {
            write!(f, "event {}; ", notice.reason)?;
        }
        match run {
            Run::Start(Start { due: _, name, body: _, replace }) => {
                for deletion in replace {
                    write!(f, "delete {} (replaced); ", deletion.key.name())?;
                }
                write!(f, "start {name} ({reason})")?;
            }
            Run::Nothing => write!(f, "nothing ({reason})")?,
        }
        match next {
            Some(next) => write!(f, "; again in {}", GoDuration(*next)),
            None => Ok(()),
        }
    }
}

impl decisions::Reason for Unknown {}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Active { unlisted, missing } = self;
        let parts = [("runs, but is not listed", unlisted), ("is listed, but not cached", missing)];
        let parts = parts.iter().filter(|(_, jobs)| !jobs.is_empty());
        let parts: Vec<String> =
            parts.map(|(what, jobs)| format!("{} {what}", list(jobs, ToString::to_string))).collect();
        f.write_str(&parts.join("; "))
    }
}
