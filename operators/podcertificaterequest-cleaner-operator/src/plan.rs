//! When a request goes: values made from its age, and nothing else.
//!
//! Two decisions: [`plan_round`] for when each request of a list is looked at, and [`plan`] for one of them when that
//! time has come. Left out: the state of a request, which makes no difference.
//!
//! Upstream: `handle`, `pkg/controller/certificates/cleaner/pcrcleaner.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::object::{Key, Meta, Uid};
use shared::api::time::Time;
use shared::runtime::decisions::{self, LiveRead, Reasoned};
use shared::runtime::flags::GoDuration;

use crate::objects::PodCertificateRequest;
use crate::observe::{Listed, Observed};

/// How old a request may get.
///
/// Upstream: `newPodCertificateRequestCleanerController`, `cmd/kube-controller-manager/app/certificates.go`.
const LIFETIME_SECONDS: i64 = 15 * 60;

/// The decision about a request, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It is being deleted already, and a finalizer keeps it.
    Keep,
    /// It is looked at again.
    Wait {
        /// After this time.
        left: Duration,
        /// When its time is over.
        until: Time,
    },
    /// It is deleted.
    Delete {
        /// Since when its time is over.
        since: Time,
        /// This very request.
        uid: Uid,
    },
}

/// Why a request is kept or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is being deleted already.
    BeingDeleted,
    /// Its time is not over.
    NotOver {
        /// When it will be.
        until: Time,
    },
    /// Its time is over.
    Over {
        /// Since when.
        since: Time,
    },
}

/// When the requests of a list are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundPlan {
    /// Each of them that is not being deleted.
    pub looks: Vec<Look>,
    /// The result of the list.
    pub reason: RoundReason,
}

/// When one request is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// This request.
    pub key: Key,
    /// Once this time has passed; zero if its time is over.
    pub left: Duration,
}

/// The result of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RoundReason {
    /// The apiserver does not serve requests.
    NotServed,
    /// So many are there.
    Found {
        /// How many.
        requests: usize,
    },
}

/// Why a request is read before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unknown {
    /// Nothing of it is kept between two rounds.
    NotFollowed,
}

impl decisions::Reason for Reason {}
impl decisions::Reason for RoundReason {}
impl decisions::Reason for Unknown {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep => Reason::BeingDeleted,
            Self::Wait { left: _, until } => Reason::NotOver { until: *until },
            Self::Delete { since, uid: _ } => Reason::Over { since: *since },
        }
    }
}

impl Reasoned for RoundPlan {
    fn reason(&self) -> impl decisions::Reason {
        self.reason
    }
}

/// The first stage of each sync of a request.
pub fn plan_live_read() -> LiveRead<Unknown> {
    LiveRead { step: "read the request", reason: Unknown::NotFollowed }
}

/// When the time of a request is over. One that nobody knows the beginning of has long been there, as in Go.
fn end(metadata: &Meta) -> Time {
    Time::from_second(metadata.creation.map_or(0, Time::second).saturating_add(LIFETIME_SECONDS))
}

/// Decides on one request.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { request: PodCertificateRequest { metadata } } = observed;
    if metadata.is_being_deleted() {
        return Plan::Keep;
    }
    let end = end(metadata);
    match end.remaining(0, now) {
        Some(left) => Plan::Wait { left, until: end },
        None => Plan::Delete { since: end, uid: metadata.uid },
    }
}

/// Decides when each request of a list is looked at.
pub fn plan_round(listed: &Listed, now: Timestamp) -> RoundPlan {
    let requests = match listed {
        Listed::Requests(requests) => requests,
        Listed::NotServed => return RoundPlan { looks: Vec::new(), reason: RoundReason::NotServed },
    };
    let look = |PodCertificateRequest { metadata }: &PodCertificateRequest| {
        let left = end(metadata).remaining(0, now).unwrap_or_default();
        (!metadata.is_being_deleted()).then(|| Look { key: metadata.key.clone(), left })
    };
    let looks = requests.iter().filter_map(look).collect();
    RoundPlan { looks, reason: RoundReason::Found { requests: requests.len() } }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep => write!(f, "keep ({reason})"),
            Self::Wait { left, until: _ } => write!(f, "wait {} ({reason})", GoDuration(*left)),
            Self::Delete { .. } => write!(f, "delete ({reason})"),
        }
    }
}

impl fmt::Display for RoundPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { looks, reason } = self;
        match looks.len() {
            0 => write!(f, "nothing ({reason})"),
            looks => write!(f, "look at {looks} once their time is over ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NotOver { until } => write!(f, "may stay until {until}"),
            Self::Over { since } => write!(f, "could stay until {since}"),
        }
    }
}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotServed => f.write_str("the apiserver serves none"),
            Self::Found { requests } => write!(f, "{requests} are there"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed => f.write_str("it is not followed"),
        }
    }
}
