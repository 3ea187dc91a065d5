//! Decides one sync of a CronJob, with its reasons, from one observation and the time.
//!
//! At most one Job is started, for the latest time that is due. Left out: the status, which is [`crate::status`]'s, and
//! the warning `MissSchedule`: upstream has it, but never gets there, because a time beyond the deadline is not due.
//!
//! Upstream: `syncCronJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.

pub mod cron;
mod history;
pub mod job;
pub mod schedule;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::runtime::events::EventType;
use shared::runtime::flags::GoDuration;

use crate::objects::{ConcurrencyPolicy, CronJob, Ended, Job, JobReference, reasons};
use crate::observe::Observed;
use cron::InvalidCron;
use schedule::{Due, Missed};

/// One sync, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Finished Jobs beyond the history limits.
    pub cleanup: Vec<Deletion>,
    /// The Jobs that leave the list of active ones.
    pub leave: Vec<Leave>,
    /// Events besides those of the writes.
    pub notices: Vec<Notice>,
    /// The Job that is started, or the reason why none is.
    pub run: Run,
    /// When to look again; none if only a change can make a difference.
    pub next: Option<Duration>,
}

/// A Job to be deleted, if it is still this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
}

impl Deletion {
    fn of(job: &Job) -> Self {
        Self { key: job.metadata.key.clone(), uid: job.metadata.uid }
    }
}

/// An active Job that is active no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leave {
    /// Its identity.
    pub uid: Uid,
    /// Its name.
    pub name: Box<str>,
    /// Why it leaves.
    pub why: Left,
}

/// Why a Job is active no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It has ended.
    Ended(Ended),
    /// It is gone.
    Missing,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Normal or Warning.
    pub kind: EventType,
    /// Its reason.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
}

impl Notice {
    fn warning(reason: &'static str, message: String) -> Self {
        Self { kind: EventType::Warning, reason, message }
    }
}

/// The Job that is started, or the reason why none is.
#[derive(Clone, Debug, PartialEq)]
pub enum Run {
    /// The Job of a time that is due.
    Start(Start),
    /// Nothing.
    Nothing(Idle),
}

/// A Job to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// When it was due.
    pub due: Timestamp,
    /// Its name, which no other Job may have.
    pub name: String,
    /// Its JSON.
    pub body: String,
    /// The Jobs that must be gone first.
    pub replace: Vec<Deletion>,
}

/// Why nothing is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// The CronJob is being deleted.
    BeingDeleted,
    /// There is no such time zone.
    UnknownTimeZone,
    /// It is suspended.
    Suspended,
    /// The schedule cannot be read.
    Unparseable,
    /// The schedule is never due.
    NeverDue,
    /// Nothing is due yet, or no longer.
    NotDue,
    /// The run that is due was started before.
    Started(Timestamp),
    /// The job template cannot be read, so the run that is due has no Job.
    InvalidTemplate(Timestamp),
    /// The run that is due must wait for the end of another Job.
    Forbidden(Timestamp),
}

/// Decides one sync.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let cleanup = history::surplus(observed);
    let leave = plan_leave(observed);
    let mut notices = unexpected(observed);
    let (run, next) = plan_run(observed, &leave, now, &mut notices);
    Plan { cleanup, leave, notices, run, next }
}

/// Upstream has another event where the schedule was edited: `updateCronJob`,
/// `pkg/controller/cronjob/cronjob_controllerv2.go`.
fn unparseable(was_edited: bool, schedule: &str, error: &InvalidCron) -> Notice {
    if was_edited {
        let message = format!("unparseable schedule for cronjob: {schedule}");
        return Notice::warning(reasons::UNPARSEABLE_NEW_SCHEDULE, message);
    }
    Notice::warning(reasons::UNPARSEABLE_SCHEDULE, format!("unparseable schedule: {schedule:?} : {error}"))
}

fn plan_leave(observed: &Observed) -> Vec<Leave> {
    let why = |uid: Uid| {
        if observed.missing.contains(&uid) {
            return Some(Left::Missing);
        }
        observed.jobs.iter().find(|job| job.metadata.uid == uid)?.ended.map(Left::Ended)
    };
    let active = observed.cron_job.status.active.iter();
    active.filter_map(|job| Some(Leave { uid: job.uid, name: job.name.clone(), why: why(job.uid)? })).collect()
}

fn unexpected(observed: &Observed) -> Vec<Notice> {
    let is_unexpected =
        |job: &&std::sync::Arc<Job>| job.ended.is_none() && !observed.cron_job.has_active(job.metadata.uid);
    let text = |name: &str| format!("Saw a job that the controller did not create or forgot: {name}");
    let jobs = observed.jobs.iter().filter(is_unexpected);
    jobs.map(|job| Notice::warning(reasons::UNEXPECTED_JOB, text(job.metadata.name()))).collect()
}

fn plan_run(
    observed: &Observed,
    leave: &[Leave],
    now: Timestamp,
    notices: &mut Vec<Notice>,
) -> (Run, Option<Duration>) {
    let cron_job = &*observed.cron_job;
    let idle = |why| (Run::Nothing(why), None);
    if cron_job.metadata.is_being_deleted() {
        return idle(Idle::BeingDeleted);
    }
    if let Err(error) = schedule::check_zone(cron_job) {
        let zone = cron_job.spec.time_zone.as_deref().unwrap_or_default();
        notices.push(Notice::warning(reasons::UNKNOWN_TIME_ZONE, format!("invalid timeZone: {zone:?}: {error}")));
        return idle(Idle::UnknownTimeZone);
    }
    if cron_job.spec.suspend == Some(true) {
        return idle(Idle::Suspended);
    }
    let text = &*cron_job.spec.schedule;
    if schedule::names_zone(text) {
        let message = format!(
            "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        );
        notices.push(Notice::warning(reasons::UNSUPPORTED_SCHEDULE, message));
    }
    let schedule = match schedule::read(cron_job) {
        Ok(schedule) => schedule,
        Err(error) => {
            notices.push(unparseable(observed.edited_at.is_some(), text, &error));
            return idle(Idle::Unparseable);
        }
    };
    let due = match schedule::most_recent(&schedule, schedule::since_in_time(cron_job, observed.edited_at, now), now) {
        Ok(due) => due,
        Err(error) => {
            notices.push(Notice::warning(reasons::INVALID_SCHEDULE, format!("invalid schedule: {text} : {error}")));
            return idle(Idle::NeverDue);
        }
    };
    let run = plan_due(cron_job, &active_after(cron_job, leave), due, notices);
    let since = match &run {
        Run::Start(start) => start.due,
        Run::Nothing(_) => schedule::since(cron_job, observed.edited_at),
    };
    let next = schedule::next_delay(&schedule, since, now);
    (run, next)
}

fn active_after<'a>(cron_job: &'a CronJob, leave: &[Leave]) -> Vec<&'a JobReference> {
    let left: BTreeSet<Uid> = leave.iter().map(|leave| leave.uid).collect();
    cron_job.status.active.iter().filter(|job| !left.contains(&job.uid)).collect()
}

fn plan_due(cron_job: &CronJob, active: &[&JobReference], due: Due, notices: &mut Vec<Notice>) -> Run {
    let Some(time) = due.time else { return Run::Nothing(Idle::NotDue) };
    if due.missed == Missed::Many {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        notices.push(Notice::warning(reasons::TOO_MANY_MISSED_TIMES, message.to_owned()));
    }
    let name = job::name(cron_job, time);
    let namespace = cron_job.metadata.namespace();
    let is_active = active.iter().any(|job| job.namespace == *namespace && *job.name == *name);
    if is_active || cron_job.status.last_schedule_time.map(Time::timestamp) == Some(time) {
        return Run::Nothing(Idle::Started(time));
    }
    let policy = cron_job.spec.concurrency_policy;
    if policy == ConcurrencyPolicy::Forbid && !active.is_empty() {
        let message = "Not starting job because prior execution is running and concurrency policy is Forbid".to_owned();
        notices.push(Notice { kind: EventType::Normal, reason: reasons::JOB_ALREADY_ACTIVE, message });
        return Run::Nothing(Idle::Forbidden(time));
    }
    let body = match job::body(cron_job, time) {
        Ok(body) => body,
        Err(invalid) => {
            notices.push(Notice::warning(reasons::FAILED_CREATE, format!("Error creating job: {invalid}")));
            return Run::Nothing(Idle::InvalidTemplate(time));
        }
    };
    let replaced = active.iter().filter(|_| policy == ConcurrencyPolicy::Replace);
    let replace = replaced.map(|job| Deletion { key: job.key(), uid: job.uid }).collect();
    Run::Start(Start { due: time, name, body, replace })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cleanup, leave, notices, run, next } = self;
        for deletion in cleanup {
            write!(f, "delete {} (history limit); ", deletion.key.name())?;
        }
        for Leave { name, why, uid: _ } in leave {
            match why {
                Left::Ended(ended) => write!(f, "{name} is over ({ended}); ")?,
                Left::Missing => write!(f, "{name} is missing; ")?,
            }
        }
        for notice in notices {
            write!(f, "tell {}; ", notice.reason)?;
        }
        run.fmt(f)?;
        match next {
            Some(next) => write!(f, "; again in {}", GoDuration(*next)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(Start { due, name, body: _, replace }) => {
                for deletion in replace {
                    write!(f, "delete {} (replaced); ", deletion.key.name())?;
                }
                write!(f, "start {name} (due {due})")
            }
            Self::Nothing(Idle::BeingDeleted) => f.write_str("nothing (being deleted)"),
            Self::Nothing(Idle::UnknownTimeZone) => f.write_str("nothing (unknown time zone)"),
            Self::Nothing(Idle::Suspended) => f.write_str("nothing (suspended)"),
            Self::Nothing(Idle::Unparseable) => f.write_str("nothing (the schedule cannot be read)"),
            Self::Nothing(Idle::NeverDue) => f.write_str("nothing (the schedule is never due)"),
            Self::Nothing(Idle::NotDue) => f.write_str("nothing (not due)"),
            Self::Nothing(Idle::Started(due)) => write!(f, "nothing ({due} was started)"),
            Self::Nothing(Idle::InvalidTemplate(due)) => {
                write!(f, "nothing ({due} cannot be made from the job template)")
            }
            Self::Nothing(Idle::Forbidden(due)) => write!(f, "nothing ({due} waits for a running job)"),
        }
    }
}
