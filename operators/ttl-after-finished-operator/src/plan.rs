//! Whether a Job's time to live is over.
//!
//! Upstream: `processTTL`, `needsCleanup` and `timeLeft`,
//! `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, Reasoned};

use crate::objects::{End, Job};
use crate::observe::Observed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    /// Sync it again after this time.
    Wait {
        left: Duration,
        expires: Time,
    },
    Delete {
        expired: Time,
        /// The Job's uid and version, so that a change of its time to live is not missed.
        preconditions: Preconditions,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is being deleted already.
    BeingDeleted,
    NoTtl,
    NotFinished,
    /// It has finished, but its condition has no time.
    UnknownFinishTime,
    /// Its time to live is not over.
    NotExpired {
        expires: Time,
    },
    Expired {
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

/// Upstream: `needsCleanup`.
pub fn needs_cleanup(job: &Job) -> bool {
    !job.metadata.is_being_deleted() && job.ttl_seconds.is_some() && job.end != End::NotYet
}

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
        None => Plan::Delete { expired: expires, preconditions: Preconditions::of(&job.metadata) },
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
            Self::UnknownFinishTime => f.write_str("finished, time unknown"),
            Self::NotExpired { expires } => write!(f, "expires {expires}"),
            Self::Expired { expired } => write!(f, "expired {expired}"),
        }
    }
}
