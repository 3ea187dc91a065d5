//! Counts the pods of a budget, with the reasons, from one observation and the time.
//!
//! Left out: the status that follows, which is [`crate::status`]'s; and pods whose disruption never came, which
//! [`stale`] decides about.
//!
//! Upstream: `trySync`, `pkg/controller/disruption/disruption.go`.

pub mod disrupted;
pub mod expected;
pub mod notices;
pub mod reason;
pub mod stale;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::ObjectReference;
use shared::api::time::Time;
use shared::runtime::decisions::{self, LiveRead, Reasoned};
use shared::runtime::events::EventType;
use shared::runtime::flags::GoDuration;

use crate::observe::Observed;
use disrupted::{Disrupted, disrupted};
use expected::{Expected, expected};
use reason::{Reason, Unknown};

/// One sync, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The events.
    pub notices: Vec<PlannedEvent>,
    /// The numbers for the status, or why there are none.
    pub counts: Result<Counts, Failure>,
    /// When the first eviction that goes on will have taken too long.
    pub recheck: Option<Duration>,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedEvent {
    /// The object that it is about.
    pub about: ObjectReference,
    /// Normal or Warning.
    pub kind: EventType,
    /// Its reason.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
}

/// The numbers of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many pods are healthy.
    pub current_healthy: i32,
    /// How many must be.
    pub desired_healthy: i32,
    /// How many pods there should be.
    pub expected_pods: i32,
    /// The evictions that go on.
    pub disrupted_pods: BTreeMap<Box<str>, Time>,
    /// How many pods have no owner and count for nothing.
    pub unmanaged: usize,
}

impl Counts {
    /// How many pods may be evicted. None while there are no pods to be expected: the first ones may come before the
    /// next sync.
    ///
    /// Upstream: `updatePdbStatus`, `pkg/controller/disruption/disruption.go`.
    pub fn disruptions_allowed(&self) -> i32 {
        if self.expected_pods <= 0 { 0 } else { self.current_healthy.saturating_sub(self.desired_healthy).max(0) }
    }
}

/// Why the pods cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error.
    pub message: String,
    /// Only a change can make a difference. A failure that may pass is tried again.
    pub is_lasting: bool,
}

impl Failure {
    /// One that lasts until something changes.
    pub fn lasting(message: String) -> Self {
        Self { message, is_lasting: true }
    }

    /// One that may be over soon.
    pub fn passing(error: &impl fmt::Display) -> Self {
        Self { message: error.to_string(), is_lasting: false }
    }
}

/// Plans a wait where the status has evictions of pods that the cache does not have: they may be gone, or not seen yet.
pub fn plan_wait(observed: &Observed) -> Option<LiveRead<Unknown>> {
    let unseen = observed.unseen_evictions();
    let step = "wait until the pods are as new as the eviction";
    (!unseen.is_empty()).then(|| LiveRead { step, reason: Unknown::evicted(&unseen) })
}

/// Plans a live read where the budget depends on how many pods the owners ask for.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Unknown>> {
    if !observed.budget.limit.needs_scale() {
        return None;
    }
    let owners: BTreeMap<_, _> = observed
        .pods
        .iter()
        .filter_map(|pod| pod.metadata.controller.as_ref())
        .map(|owner| (owner.uid, format!("{} {}", owner.kind, owner.name)))
        .collect();
    let step = "read how many pods the owners ask for";
    (!owners.is_empty()).then(|| LiveRead { step, reason: Unknown::scale(owners.into_values()) })
}

/// Decides one sync.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut notices = Vec::new();
    if let Err(invalid) = &observed.budget.selects {
        notices.push(notices::pods_failed(observed, invalid));
        return Plan::failed(notices, Failure::lasting(invalid.to_string()));
    }
    if observed.pods.is_empty() {
        notices.push(notices::no_pods(observed));
    }
    let Expected { desired_healthy, pods: expected_pods, unmanaged } = match expected(observed) {
        Ok(expected) => expected,
        Err(failure) => {
            notices.push(notices::count_failed(observed, &failure));
            return Plan::failed(notices, failure);
        }
    };
    if unmanaged > 0 {
        notices.push(notices::unmanaged(observed));
    }
    let Disrupted { going: disrupted_pods, overdue, recheck } = disrupted(observed, now);
    notices.extend(overdue.iter().map(|pod| notices::not_deleted(observed, pod)));
    let is_healthy = |name: &str| !disrupted_pods.contains_key(name);
    let healthy = observed
        .pods
        .iter()
        .filter(|pod| pod.is_ready && !pod.metadata.is_being_deleted() && is_healthy(pod.metadata.name()));
    let current_healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let counts = Counts { current_healthy, desired_healthy, expected_pods, disrupted_pods, unmanaged };
    Plan { notices, counts: Ok(counts), recheck }
}

impl Plan {
    fn failed(notices: Vec<PlannedEvent>, failure: Failure) -> Self {
        Self { notices, counts: Err(failure), recheck: None }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        Reason::of(&self.counts)
    }
}

/// `tell NoPods; allow 0 (0 of 0 pods are healthy, and 2 must be)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { notices, counts, recheck } = self;
        for notice in notices {
            write!(f, "tell {}; ", notice.reason)?;
        }
        let allowed = counts.as_ref().map_or(0, Counts::disruptions_allowed);
        write!(f, "allow {allowed} ({})", Reason::of(counts))?;
        match recheck {
            Some(recheck) => write!(f, "; again in {}", GoDuration(*recheck)),
            None => Ok(()),
        }
    }
}
