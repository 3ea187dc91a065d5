//! Whether a pod is still said to be ended by something outside of it, long after nobody did.
//!
//! Left out: the component that has set the condition. Only the kubelet may take any time.
//!
//! Upstream: `nonTerminatingPodHasStaleDisruptionCondition` and `syncStalePodDisruption`,
//! `pkg/controller/disruption/disruption.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::list::list;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::runtime::control::Preconditions;
use shared::runtime::decisions::{self, Reasoned};
use shared::runtime::flags::GoDuration;

use crate::objects::Pod;
use crate::observe::search::{Scope, Search};
use crate::observe::stale::StalePod;

/// How many seconds something may take that is about to end a pod.
///
/// Upstream: `stalePodDisruptionTimeout`, `pkg/controller/disruption/disruption.go`.
pub const STALE_SECONDS: i64 = 120;

/// How long until the condition of a pod is stale; none if the pod has no such condition, or it will be ended.
pub fn stale_in(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let target = pod.target.filter(|_| !pod.metadata.is_being_deleted() && !pod.has_ended)?;
    let left = target.since.and_then(|since| since.remaining(STALE_SECONDS, now));
    Some(left.unwrap_or_default())
}

/// The decision about one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalePlan {
    /// Nothing is written.
    Keep(StaleReason),
    /// It is looked at again.
    Wait {
        /// After this time.
        left: Duration,
        /// When its condition will be stale.
        due: Time,
    },
    /// Its condition becomes False, if it is still in this state.
    Clear {
        /// This pod, in this state.
        preconditions: Preconditions,
        /// Its generation.
        generation: i64,
        /// Since when it was to be ended, if the condition says so.
        since: Option<Time>,
    },
}

/// Why a pod is left alone, or its condition is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StaleReason {
    /// It is being deleted.
    BeingDeleted,
    /// It has ended.
    Ended,
    /// Nothing outside of it is said to end it, the kubelet aside.
    NoTarget,
    /// There is still time for something to end it.
    NotStale {
        /// Until then.
        due: Time,
    },
    /// Nothing has ended it in time.
    Stale {
        /// Since when it was to be ended.
        since: Option<Time>,
    },
}

/// Decides about one pod.
pub fn plan_stale(observed: &StalePod, now: Timestamp) -> StalePlan {
    let StalePod { pod } = observed;
    let meta = &pod.metadata;
    if meta.is_being_deleted() {
        return StalePlan::Keep(StaleReason::BeingDeleted);
    }
    if pod.has_ended {
        return StalePlan::Keep(StaleReason::Ended);
    }
    let Some(target) = pod.target else { return StalePlan::Keep(StaleReason::NoTarget) };
    if let Some(since) = target.since
        && let Some(left) = since.remaining(STALE_SECONDS, now)
    {
        return StalePlan::Wait { left, due: Time::from_second(since.second().saturating_add(STALE_SECONDS)) };
    }
    let preconditions = Preconditions { uid: meta.uid, resource_version: Some(meta.resource_version) };
    StalePlan::Clear { preconditions, generation: meta.generation, since: target.since }
}

/// The pods that a page of a search has found, and when to look at each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPlan {
    /// By key.
    pub found: Vec<(Key, Duration)>,
    /// When to read the next page, of this search or of the next one.
    pub next: Duration,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SearchReason {
    /// So many pods of this page are to be ended by something outside of them.
    Found {
        /// How many.
        pods: usize,
    },
}

/// Decides which of the pods that were found are looked at.
pub fn plan_search(observed: &Search, now: Timestamp) -> SearchPlan {
    let due = observed.targets.iter().filter_map(|pod| Some((pod.metadata.key.clone(), stale_in(pod, now)?)));
    let mut found: Vec<(Key, Duration)> = due.collect();
    found.sort_unstable();
    let scope = Scope::of(&observed.key);
    let next = if observed.goes_on { scope.pause() } else { scope.period() };
    SearchPlan { found, next }
}

impl StalePlan {
    fn why(&self) -> StaleReason {
        match self {
            Self::Keep(reason) => *reason,
            Self::Wait { left: _, due } => StaleReason::NotStale { due: *due },
            Self::Clear { preconditions: _, generation: _, since } => StaleReason::Stale { since: *since },
        }
    }
}

impl decisions::Reason for StaleReason {}
impl decisions::Reason for SearchReason {}

impl Reasoned for StalePlan {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl Reasoned for SearchPlan {
    fn reason(&self) -> impl decisions::Reason {
        SearchReason::Found { pods: self.found.len() }
    }
}

impl fmt::Display for StalePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.why();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Wait { left, due: _ } => write!(f, "wait {} ({reason})", GoDuration(*left)),
            Self::Clear { .. } => write!(f, "take the condition back ({reason})"),
        }
    }
}

impl fmt::Display for SearchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.found.is_empty() {
            f.write_str("nothing (no pod is to be ended from outside)")?;
        } else {
            write!(f, "look at {} (to be ended from outside)", list(&self.found, |(key, _)| key.to_string()))?;
        }
        write!(f, ", the next page in {}", GoDuration(self.next))
    }
}

impl fmt::Display for StaleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::Ended => f.write_str("has ended"),
            Self::NoTarget => f.write_str("nothing is to end it"),
            Self::NotStale { due } => write!(f, "until {due} it may still be ended"),
            Self::Stale { since: Some(since) } => write!(f, "nothing has ended it since {since}"),
            Self::Stale { since: None } => f.write_str("nothing has ended it, nobody knows since when"),
        }
    }
}

impl fmt::Display for SearchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Found { pods } = self;
        write!(f, "{pods} pods are to be ended from outside")
    }
}
