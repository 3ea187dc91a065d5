//! Whether a Job's time to live is over: a value made from one state of the Job, and nothing else.
//!
//! It is decided twice, for the state in the cache and then for the one just read. Left out: the reading.
//!
//! Upstream: `processTTL`, `needsCleanup` and `timeLeft`,
//! `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::time::Time;
use shared::runtime::control::Preconditions;
use shared::runtime::decisions::{self, Reasoned};
use shared::runtime::flags::GoDuration;

use crate::objects::{End, Job};
use crate::observe::Observed;

/// The decision about a Job, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing is written.
    Keep(Reason),
    /// It is looked at again.
    Wait {
        /// After this time.
        left: Duration,
        /// When its time is over.
        expires: Time,
    },
    /// It is deleted, if it is still in this state.
    Delete {
        /// Since when its time is over.
        expired: Time,
        /// This Job, in this state: a time to live that is changed now is not passed over.
        preconditions: Preconditions,
    },
}

/// Why a Job is kept or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is being deleted already.
    BeingDeleted,
    /// It has no time to live.
    NoTtl,
    /// It goes on.
    NotFinished,
    /// It has ended, and nobody knows when.
    UnknownFinishTime,
    /// Its time is not over.
    NotExpired {
        /// When it will be.
        expires: Time,
    },
    /// Its time is over.
    Expired {
        /// Since when.
        expired: Time,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => *reason,
            Self::Wait { left: _, expires } => Reason::NotExpired { expires: *expires },
            Self::Delete { expired, preconditions: _ } => Reason::Expired { expired: *expired },
        }
    }
}

/// Whether there is anything to wait for. Upstream: `needsCleanup`.
pub fn is_of_interest(job: &Job) -> bool {
    !job.metadata.is_being_deleted() && job.ttl_seconds.is_some() && job.end != End::NotYet
}

/// Decides on one state of a Job.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { job } = observed;
    if job.metadata.is_being_deleted() {
        return Plan::Keep(Reason::BeingDeleted);
    }
    let Some(ttl_seconds) = job.ttl_seconds else { return Plan::Keep(Reason::NoTtl) };
    let end = match job.end {
        End::NotYet => return Plan::Keep(Reason::NotFinished),
        End::AtUnknownTime => return Plan::Keep(Reason::UnknownFinishTime),
        End::At(end) => end,
    };
    let expires = Time::from_second(end.second().saturating_add(ttl_seconds.into()));
    match end.remaining(ttl_seconds.into(), now) {
        Some(left) => Plan::Wait { left, expires },
        None => Plan::Delete {
            expired: expires,
            preconditions: Preconditions {
                uid: job.metadata.uid,
                resource_version: Some(job.metadata.resource_version),
            },
        },
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Wait { left, expires: _ } => write!(f, "wait {} ({reason})", GoDuration(*left)),
            Self::Delete { .. } => write!(f, "delete ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoTtl => f.write_str("no time to live"),
            Self::NotFinished => f.write_str("not finished"),
            Self::UnknownFinishTime => f.write_str("finished, nobody knows when"),
            Self::NotExpired { expires } => write!(f, "expires {expires}"),
            Self::Expired { expired } => write!(f, "expired {expired}"),
        }
    }
}
