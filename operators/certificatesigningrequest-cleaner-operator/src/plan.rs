//! When a request is deleted.
//!
//! Upstream: `handle`, `pkg/controller/certificates/cleaner/cleaner.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::time::Time;
use shared::controllers::certificates::{APPROVED, DENIED, FAILED};
use shared::process::flags::GoDuration;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, Reasoned};

use crate::objects::{Certificate, CertificateSigningRequest, Condition};
use crate::observe::Observed;

/// How long a request is kept after the approval if its certificate is issued. Upstream: `approvedExpiration`.
const ISSUED_SECONDS: i64 = 3600;
/// How long a denied or failed request is kept. Upstream: `deniedExpiration`.
const DENIED_SECONDS: i64 = 3600;
/// How long a request waits for a decision or for its certificate. Upstream: `pendingExpiration`.
const PENDING_SECONDS: i64 = 24 * 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    /// Sync it again at its end.
    Wait {
        /// The time until then.
        left: Duration,
        end: End,
    },
    Delete {
        end: End,
        /// The observed state: a request that has just been decided on stays.
        preconditions: Preconditions,
    },
}

/// When a request may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    pub at: Time,
    pub state: State,
}

/// A state in which a request is kept for a limited time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It has no condition. Upstream: `isPendingPastDeadline`.
    Pending,
    /// It is approved and has no certificate. Upstream: `isApprovedUnissuedPastDeadline`.
    Unissued,
    /// It is approved and has its certificate. Upstream: `isIssuedPastDeadline`.
    Issued,
    /// It is approved and its certificate has not expired. Upstream: `isIssuedExpired`.
    Unexpired,
    /// It is denied. Upstream: `isDeniedPastDeadline`.
    Denied,
    /// It failed. Upstream: `isFailedPastDeadline`.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    BeingDeleted,
    /// Its conditions are of other types or have no time.
    NoEnd,
    NotOver(End),
    Over(End),
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => *reason,
            Self::Wait { left: _, end } => Reason::NotOver(*end),
            Self::Delete { end, preconditions: _ } => Reason::Over(*end),
        }
    }
}

impl End {
    /// The end of a state this long after its beginning; none if that is unknown.
    fn after(since: Option<Time>, seconds: i64, state: State) -> Option<Self> {
        since.map(|since| Self { at: Time::from_second(since.second().saturating_add(seconds)), state })
    }
}

fn ends_of(condition: &Condition, certificate: Certificate) -> [Option<End>; 2] {
    let since = condition.last_update_time;
    match (condition.type_.as_str(), certificate) {
        (APPROVED, Certificate::Missing) => [End::after(since, PENDING_SECONDS, State::Unissued), None],
        (APPROVED, Certificate::Unreadable) => [End::after(since, ISSUED_SECONDS, State::Issued), None],
        (APPROVED, Certificate::Until(at)) => {
            [End::after(since, ISSUED_SECONDS, State::Issued), Some(End { at, state: State::Unexpired })]
        }
        (DENIED, _) => [End::after(since, DENIED_SECONDS, State::Denied), None],
        (FAILED, _) => [End::after(since, DENIED_SECONDS, State::Failed), None],
        (_, _) => [None, None],
    }
}

/// The earliest end of a request; none if it has none.
pub fn end(request: &CertificateSigningRequest) -> Option<End> {
    let CertificateSigningRequest { metadata, conditions, certificate } = request;
    let pending =
        if conditions.is_empty() { End::after(metadata.creation, PENDING_SECONDS, State::Pending) } else { None };
    let decided = conditions.iter().flat_map(|condition| ends_of(condition, *certificate)).flatten();
    pending.into_iter().chain(decided).min_by_key(|end| end.at)
}

pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { request } = observed;
    if request.metadata.is_being_deleted() {
        return Plan::Keep(Reason::BeingDeleted);
    }
    let Some(end) = end(request) else { return Plan::Keep(Reason::NoEnd) };
    match end.at.remaining(0, now) {
        Some(left) => Plan::Wait { left, end },
        None => Plan::Delete { end, preconditions: Preconditions::of(&request.metadata) },
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Wait { left, end: _ } => write!(f, "wait {} ({reason})", GoDuration(*left)),
            Self::Delete { .. } => write!(f, "delete ({reason})"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "no decision",
            Self::Unissued => "approved, no certificate",
            Self::Issued => "certificate issued",
            Self::Unexpired => "certificate valid",
            Self::Denied => "denied",
            Self::Failed => "failed",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoEnd => f.write_str("no condition with a deadline"),
            Self::NotOver(End { at, state }) | Self::Over(End { at, state }) => write!(f, "{state}; kept until {at}"),
        }
    }
}
