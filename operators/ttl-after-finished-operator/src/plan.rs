//! Whether a Job's time to live is over: a value made from one state of the Job, and nothing else.
//!
//! It is decided twice, for the state in the cache and then for the one just read. Left out: the reading.
//!
//! Upstream: `processTTL`, `needsCleanup` and `timeLeft`, `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::time::Time;
use shared::runtime::control::Preconditions;
use shared::runtime::flags::GoDuration;

use crate::objects::{End, Job};
use crate::observe::Observed;

/// What becomes of a Job, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep(Reason),
    /// Its time is not over for so long.
    Wait(Duration),
    /// It is deleted, if it is still in this state.
    Delete {
        /// Since when its time is over.
        expired: Time,
        /// This Job, in this state: a time to live that is changed now is not passed over.
        preconditions: Preconditions,
    },
}

/// Why a Job is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is being deleted already.
    BeingDeleted,
    /// It has no time to live.
    NoTtl,
    /// It goes on.
    NotFinished,
    /// It has ended, and nobody knows when.
    UnknownFinishTime,
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
    match end.remaining(ttl_seconds.into(), now) {
        Some(left) => Plan::Wait(left),
        None => Plan::Delete {
            expired: Time::from_second(end.second().saturating_add(ttl_seconds.into())),
            preconditions: Preconditions {
                uid: job.metadata.uid,
                resource_version: Some(job.metadata.resource_version),
            },
        },
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(Reason::BeingDeleted) => f.write_str("keep (being deleted)"),
            Self::Keep(Reason::NoTtl) => f.write_str("keep (no time to live)"),
            Self::Keep(Reason::NotFinished) => f.write_str("keep (not finished)"),
            Self::Keep(Reason::UnknownFinishTime) => f.write_str("keep (finished, nobody knows when)"),
            Self::Wait(left) => write!(f, "wait {}", GoDuration(*left)),
            Self::Delete { expired, preconditions: _ } => write!(f, "delete (expired {expired})"),
        }
    }
}
