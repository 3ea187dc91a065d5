//! When a request is deleted: [`plan_round`] sets a time for each request of a list, and [`plan`] decides at that time.
//!
//! Upstream: `handle`, `pkg/controller/certificates/cleaner/pcrcleaner.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::object::{Key, Meta, Uid};
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::PodCertificateRequest;
use crate::observe::{Listed, Observed};

/// The age at which a request is deleted.
///
/// Upstream: `newPodCertificateRequestCleanerController`, `cmd/kube-controller-manager/app/certificates.go`.
const LIFETIME_SECONDS: i64 = 15 * 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Write nothing: it is already being deleted.
    Keep,
    /// Sync it again at its end.
    Wait {
        /// The time until then.
        left: Duration,
        until: Time,
    },
    Delete {
        since: Time,
        uid: Uid,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    BeingDeleted,
    NotOver { until: Time },
    Over { since: Time },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundPlan {
    /// Those that are not being deleted.
    pub looks: Vec<Look>,
    pub reason: RoundReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    pub key: Key,
    /// The time until then; zero if its end has passed.
    pub left: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RoundReason {
    /// The apiserver does not serve the resource.
    NotServed,
    Found {
        requests: usize,
    },
}

/// Why a request is read live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unknown {
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

/// The end of a request. As in Go, a missing creation time counts as long ago.
fn end(metadata: &Meta) -> Time {
    Time::from_second(metadata.creation.map_or(0, Time::second).saturating_add(LIFETIME_SECONDS))
}

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

/// Decides when each request of a list is synced.
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
            looks => write!(f, "sync {looks} at their end ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NotOver { until: end } | Self::Over { since: end } => write!(f, "kept until {end}"),
        }
    }
}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotServed => f.write_str("the apiserver does not serve them"),
            Self::Found { requests } => write!(f, "{requests} exist"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed => f.write_str("not cached"),
        }
    }
}
