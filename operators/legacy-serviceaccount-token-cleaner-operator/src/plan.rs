//! Whether a round checks tokens, and whether a token is kept, marked or deleted.
//!
//! Upstream: `evaluateSATokens`, `pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go`.

mod reasons;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::Uid;
use shared::api::time::Time;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::day::Day;
use crate::objects::{INVALID_SINCE, LAST_USED, LabelledDay, Token, Tracking};
use crate::observe::Observed;
pub use reasons::{Reason, RoundReason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Nothing(RoundReason),
    Check(RoundReason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    Mark {
        since: Day,
        uid: Uid,
        /// When it was last used; none if never while tracked.
        last_used: Option<Day>,
    },
    Delete {
        since: Day,
        /// The observed state: a token that has just been used or lost the label stays.
        preconditions: Preconditions,
    },
}

impl Reasoned for Round {
    fn reason(&self) -> impl decisions::Reason {
        match *self {
            Self::Nothing(reason) | Self::Check(reason) => reason,
        }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Mark { since: _, uid: _, last_used } => Reason::Unused { last_used: *last_used },
            Self::Delete { since, preconditions: _ } => Reason::Overdue { since: *since },
        }
    }
}

/// Decides for a round. Only after a whole period and one day of tracking is an unused token known as such.
pub fn plan_round(tracking: Option<&Tracking>, period: Duration, now: Timestamp) -> Round {
    let Some(tracking) = tracking else { return Round::Nothing(RoundReason::NotTracked) };
    let Some(since) = tracking.since else { return Round::Nothing(RoundReason::NoDay) };
    let first = since.end().and_then(|end| end.checked_add(period).ok()).unwrap_or(Timestamp::MAX);
    if now < first {
        Round::Nothing(RoundReason::TooShort { until: Time::of(first) })
    } else {
        Round::Check(RoundReason::LongEnough { since })
    }
}

/// Plans to read a token's account and pods if its own metadata does not keep it.
pub fn plan_live_read(observed: &Observed, period: Duration, now: Timestamp) -> Option<LiveRead<Reason>> {
    let token = &observed.token;
    let reason = match token.day(INVALID_SINCE).read() {
        Some(since) => Reason::Overdue { since },
        None => Reason::Unused { last_used: token.day(LAST_USED).read() },
    };
    let step = "read its ServiceAccount and the pods of its namespace";
    kept(token, period, now).is_none().then_some(LiveRead { step, reason })
}

pub fn plan(observed: &Observed, period: Duration, now: Timestamp) -> Plan {
    let Observed { token, account, used_by } = observed;
    if let Some(reason) = kept(token, period, now) {
        return Plan::Keep(reason);
    }
    let Some(account) = account.as_ref().filter(|account| account.is_of(token)) else {
        return Plan::Keep(Reason::NoAccount);
    };
    if !account.lists(token) {
        return Plan::Keep(Reason::NotListed);
    }
    if let Some(pod) = used_by {
        return Plan::Keep(Reason::UsedByPod { pod: pod.clone() });
    }
    let metadata = &token.metadata;
    match token.day(INVALID_SINCE).read() {
        Some(since) => Plan::Delete { since, preconditions: Preconditions::of(metadata) },
        None => Plan::Mark { since: Day::of(now), uid: metadata.uid, last_used: token.day(LAST_USED).read() },
    }
}

/// Why a token is kept because of its own metadata.
fn kept(token: &Token, period: Duration, now: Timestamp) -> Option<Reason> {
    let metadata = &token.metadata;
    let oldest = now.checked_sub(period).unwrap_or(Timestamp::MIN);
    if let Some(created) = metadata.creation.filter(|created| created.timestamp() >= oldest) {
        return Some(Reason::New { created });
    }
    if metadata.is_being_deleted() {
        return Some(Reason::BeingDeleted);
    }
    let is_recent = |day: &Day| *day >= Day::of(oldest);
    match token.day(LAST_USED) {
        LabelledDay::Unreadable => return Some(Reason::NoDay),
        LabelledDay::Day(on) if is_recent(&on) => return Some(Reason::Used { on }),
        LabelledDay::None | LabelledDay::Day(_) => {}
    }
    token.day(INVALID_SINCE).read().filter(is_recent).map(|since| Reason::Invalid { since })
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(reason) => write!(f, "nothing ({reason})"),
            Self::Check(reason) => write!(f, "check all tokens ({reason})"),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Mark { since, uid: _, last_used: _ } => write!(f, "mark as invalid since {since} ({reason})"),
            Self::Delete { .. } => write!(f, "delete ({reason})"),
        }
    }
}
