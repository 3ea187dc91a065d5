//! Causes of `CronJobs`.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::state::State;
use crate::words::{line, list, when};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Cron {
    /// `spec.suspend` of a `CronJob`.
    CronJobSuspended,
    /// `spec.timeZone` is unknown.
    UnknownTimeZone {
        zone: String,
    },
    /// `spec.schedule` is invalid.
    InvalidSchedule {
        schedule: String,
        message: String,
    },
    /// `startingDeadlineSeconds` passed before a Job was created.
    MissedDeadline {
        seconds: i64,
        message: String,
    },
    /// Too many start times were missed.
    TooManyMissed {
        message: String,
    },
    /// `concurrencyPolicy: Forbid`, and a Job is still running.
    Forbidden {
        active: Vec<String>,
    },
    CronJobActive {
        active: Vec<String>,
    },
    NotDue {
        next: Option<Timestamp>,
        last: Option<Timestamp>,
        schedule: String,
    },
}

impl Cron {
    pub fn state(&self) -> State {
        match self {
            Self::UnknownTimeZone { .. }
            | Self::InvalidSchedule { .. }
            | Self::MissedDeadline { .. }
            | Self::TooManyMissed { .. }
            | Self::Forbidden { .. } => State::Stuck,
            Self::CronJobActive { .. } => State::InProgress,
            Self::CronJobSuspended | Self::NotDue { .. } => State::AtRest,
        }
    }

    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::CronJobSuspended => "suspended (spec.suspend): no Jobs are started".to_owned(),
            Self::UnknownTimeZone { zone } => format!("unknown time zone `{zone}`"),
            Self::InvalidSchedule { schedule, message } => {
                format!("invalid schedule `{schedule}`{}", after_colon(message))
            }
            Self::MissedDeadline { seconds, message } => {
                let message = after_colon(message);
                format!("missed its scheduled time by more than {seconds} s (startingDeadlineSeconds){message}")
            }
            Self::TooManyMissed { message } => format!("missed too many scheduled times: {}", line(message)),
            Self::Forbidden { active } => {
                format!("waiting for {} to finish (concurrencyPolicy: Forbid)", list(active))
            }
            Self::CronJobActive { active } => format!("running: {}", list(active)),
            Self::NotDue { next, last, schedule } => {
                let next = next.map(|time| format!(", next {}", when(time, now))).unwrap_or_default();
                let last = last.map(|time| format!(", last {}", when(time, now))).unwrap_or_default();
                format!("not due yet: schedule `{schedule}`{next}{last}")
            }
        }
    }
}

/// A colon and the first line of the message, if there is one.
fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {}", line(message)) }
}
