//! Why a run is started or not. `due` is when it was due, `next` when the next one is.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::working::decisions;

use super::schedule::Missed;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    BeingDeleted,
    /// The time zone does not exist.
    UnknownTimeZone {
        zone: Text,
    },
    Suspended,
    Unparseable {
        schedule: Text,
        error: String,
    },
    NeverDue {
        schedule: Text,
    },
    /// No run is due yet, or ever again.
    NotDue {
        next: Option<Timestamp>,
    },
    /// The run missed its `startingDeadlineSeconds`.
    TooLate {
        due: Timestamp,
        deadline_seconds: i64,
        next: Option<Timestamp>,
    },
    /// The run was started before.
    Started {
        due: Timestamp,
    },
    /// A run is due, and its job template has to be read first.
    LargeTemplate {
        due: Timestamp,
    },
    InvalidTemplate {
        due: Timestamp,
        error: String,
    },
    /// The `concurrencyPolicy` is `Forbid`, and these Jobs are active.
    Forbidden {
        due: Timestamp,
        active: Vec<Box<str>>,
    },
    Due {
        due: Timestamp,
        missed: Missed,
        /// The Jobs to delete first, because the `concurrencyPolicy` is `Replace`.
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
            Self::Unparseable { schedule: _, error: _ } => f.write_str("invalid schedule"),
            Self::NeverDue { schedule: _ } => f.write_str("the schedule is never due"),
            Self::NotDue { next: _ } => f.write_str("not due"),
            Self::TooLate { due, deadline_seconds, next: _ } => {
                write!(f, "{due} is more than {deadline_seconds}s ago")
            }
            Self::Started { due } => write!(f, "already started {due}"),
            Self::LargeTemplate { due } => write!(f, "due {due}, but the job template is not read yet"),
            Self::InvalidTemplate { due, error: _ } => write!(f, "invalid job template for {due}"),
            Self::Forbidden { due, active: _ } => write!(f, "{due} waits for an active job"),
            Self::Due { due, missed: _, replaced: _ } => write!(f, "due {due}"),
        }
    }
}
