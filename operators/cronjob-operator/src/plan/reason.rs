//! Why a run is started or not: values that programs read as JSON, and people as text.
//!
//! Left out: which Jobs are deleted or no longer listed, which their steps say.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::runtime::decisions;

use super::schedule::Missed;

/// Why a Job is started, or none is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The CronJob is being deleted.
    BeingDeleted,
    /// There is no such time zone.
    UnknownTimeZone {
        /// Its name.
        zone: Text,
    },
    /// It is suspended.
    Suspended,
    /// The schedule cannot be read.
    Unparseable {
        /// The schedule.
        schedule: Text,
        /// The error.
        error: String,
    },
    /// The schedule is never due.
    NeverDue {
        /// The schedule.
        schedule: Text,
    },
    /// Nothing is due yet.
    NotDue {
        /// When something will be; none if never again.
        next: Option<Timestamp>,
    },
    /// The run that was due was not started in time, and is not started any more.
    TooLate {
        /// When it was due.
        due: Timestamp,
        /// `startingDeadlineSeconds`.
        deadline_seconds: i64,
        /// When something is due again.
        next: Option<Timestamp>,
    },
    /// The run that is due was started before.
    Started {
        /// When it was due.
        due: Timestamp,
    },
    /// The job template cannot be read, so the run that is due has no Job.
    InvalidTemplate {
        /// When it was due.
        due: Timestamp,
        /// The error.
        error: String,
    },
    /// The run that is due must wait for the end of others, for the `concurrencyPolicy` is `Forbid`.
    Forbidden {
        /// When it was due.
        due: Timestamp,
        /// The Jobs that run.
        active: Vec<Box<str>>,
    },
    /// A run is due.
    Due {
        /// When it was.
        due: Timestamp,
        /// How many earlier ones are passed over.
        missed: Missed,
        /// The Jobs that must go first, for the `concurrencyPolicy` is `Replace`.
        replaced: Vec<Box<str>>,
    },
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::UnknownTimeZone { zone: _ } => f.write_str("unknown time zone"),
            Self::Suspended => f.write_str("suspended"),
            Self::Unparseable { schedule: _, error: _ } => f.write_str("the schedule cannot be read"),
            Self::NeverDue { schedule: _ } => f.write_str("the schedule is never due"),
            Self::NotDue { next: _ } => f.write_str("not due"),
            Self::TooLate { due, deadline_seconds, next: _ } => {
                write!(f, "{due} is more than {deadline_seconds}s ago")
            }
            Self::Started { due } => write!(f, "{due} was started"),
            Self::InvalidTemplate { due, error: _ } => write!(f, "{due} cannot be made from the job template"),
            Self::Forbidden { due, active: _ } => write!(f, "{due} waits for a running job"),
            Self::Due { due, missed: _, replaced: _ } => write!(f, "due {due}"),
        }
    }
}
