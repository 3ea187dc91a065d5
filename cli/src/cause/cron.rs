//! Causes of `CronJobs`: why there is a Job now, or none.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::State;
use crate::words::{line, list, when};

/// Why a `CronJob` is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Cron {
    /// `spec.suspend`.
    CronJobSuspended,
    /// `spec.timeZone` is none that is known.
    UnknownTimeZone {
        /// The field's text.
        zone: String,
    },
    /// `spec.schedule` is none.
    InvalidSchedule {
        /// The field's text.
        schedule: String,
        /// The fault in it.
        message: String,
    },
    /// `startingDeadlineSeconds` was over before a Job could be created.
    MissedDeadline {
        /// So many seconds.
        seconds: i64,
        /// For people.
        message: String,
    },
    /// It missed so many times that it was not at work for long, or its clock is wrong.
    TooManyMissed {
        /// For people.
        message: String,
    },
    /// `concurrencyPolicy: Forbid`, and a Job of it still runs.
    Forbidden {
        /// Which Jobs.
        active: Vec<String>,
    },
    /// Jobs of it run.
    CronJobActive {
        /// Which ones.
        active: Vec<String>,
    },
    /// It is not its time yet.
    NotDue {
        /// When it is.
        next: Option<Timestamp>,
        /// When it last was.
        last: Option<Timestamp>,
        /// `spec.schedule`.
        schedule: String,
    },
}

impl Cron {
    /// Whether anybody has to do something.
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

    /// In words.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::CronJobSuspended => "suspended (spec.suspend): it starts no Job".to_owned(),
            Self::UnknownTimeZone { zone } => format!("time zone `{zone}` is not known"),
            Self::InvalidSchedule { schedule, message } => {
                format!("schedule `{schedule}` cannot be used: {}", line(message))
            }
            Self::MissedDeadline { seconds, message } => {
                let said = if message.is_empty() { String::new() } else { format!(": {}", line(message)) };
                format!("it missed its time by more than {seconds} s (startingDeadlineSeconds){said}")
            }
            Self::TooManyMissed { message } => format!("it missed too many times: {}", line(message)),
            Self::Forbidden { active } => {
                format!("it is time, but {} still runs (concurrencyPolicy: Forbid)", list(active))
            }
            Self::CronJobActive { active } => format!("{} runs", list(active)),
            Self::NotDue { next, last, schedule } => {
                let next = next.map(|time| format!(", next {}", when(time, now))).unwrap_or_default();
                let last = last.map(|time| format!(", last {}", when(time, now))).unwrap_or_default();
                format!("not due yet: schedule `{schedule}`{next}{last}")
            }
        }
    }
}
