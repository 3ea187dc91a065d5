//! When a bootstrap token is deleted.
//!
//! Upstream: `evalSecret`, `pkg/controller/bootstrap/tokencleaner.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::bootstrap_token::Expiration;
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, Reasoned};

use crate::objects::BootstrapToken;
use crate::observe::Observed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    /// Sync it again when it expires.
    Wait {
        /// The time until then.
        left: Duration,
        expires: Time,
    },
    Delete {
        reason: Reason,
        /// The observed state: a token whose expiration has just changed stays.
        preconditions: Preconditions,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    BeingDeleted,
    NeverExpires,
    NotExpired {
        expires: Time,
    },
    Expired {
        expired: Time,
    },
    /// Its expiration is not a time, so the apiserver refuses the token too.
    UnreadableExpiration,
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) | Self::Delete { reason, preconditions: _ } => *reason,
            Self::Wait { left: _, expires } => Reason::NotExpired { expires: *expires },
        }
    }
}

pub fn is_of_interest(token: &BootstrapToken) -> bool {
    !token.metadata.is_being_deleted() && token.expiration != Expiration::Never
}

pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { token } = observed;
    let BootstrapToken { metadata, expiration } = &**token;
    if metadata.is_being_deleted() {
        return Plan::Keep(Reason::BeingDeleted);
    }
    let reason = match (*expiration, expiration.left(now)) {
        (Expiration::Never, _) => return Plan::Keep(Reason::NeverExpires),
        (Expiration::At(end), Some(left)) => return Plan::Wait { left, expires: Time::of(end) },
        (Expiration::At(end), None) => Reason::Expired { expired: Time::of(end) },
        (Expiration::Unreadable, _) => Reason::UnreadableExpiration,
    };
    let preconditions = Preconditions::of(metadata);
    Plan::Delete { reason, preconditions }
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
            Self::NeverExpires => f.write_str("never expires"),
            Self::NotExpired { expires } => write!(f, "expires {expires}"),
            Self::Expired { expired } => write!(f, "expired {expired}"),
            Self::UnreadableExpiration => f.write_str("expiration is not a time"),
        }
    }
}
