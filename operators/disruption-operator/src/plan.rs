//! The stages of a sync, from one observation and the time.
//!
//! Upstream: `trySync`, `pkg/controller/disruption/disruption.go`.

pub mod counts;
pub mod disrupted;
pub mod expected;
pub mod notices;
pub mod reasons;
pub mod stale;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, LiveRead, Reasoned};
use shared::working::events::PlannedEvent;

use crate::objects::Failure;
use crate::observe::Observed;
use crate::observe::scales::Scales;
use counts::Counts;
use disrupted::{Disrupted, disrupted};
use expected::{Expected, as_before, expected};
use reasons::Reason;

const EVICTION_TIMER: &str = "the timeout of an eviction";
const SCALE_TIMER: &str = "the scales of the owners";

#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// Wait until the pods are as new as the evictions whose pods are missing: these may be gone, or not seen yet.
    SeeEvictions(LiveRead<Reason>),
    ReadScales(LiveRead<Reason>),
    Decide(Plan),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub notices: Vec<PlannedEvent>,
    /// The numbers for the status, or why there are none.
    pub counts: Result<Counts, Failure>,
    /// The time until the next sync, and its purpose.
    pub recheck: Option<(Duration, &'static str)>,
    /// Why owners must be read again at once. Until then the numbers required are those of the last status.
    pub unread: Option<Failure>,
}

pub fn next_stage(observed: &Observed, now: Timestamp) -> Stage {
    let evictions = observed.evictions_without_pod();
    if !observed.has_seen_evictions && !evictions.is_empty() {
        let step = "wait until the pods are as new as the evictions";
        return Stage::SeeEvictions(LiveRead { step, reason: Reason::evicted(&evictions) });
    }
    if observed.scales == Scales::Unread
        && observed.budget.limit.needs_scale()
        && let Some(reason) = scales_to_read(observed)
    {
        return Stage::ReadScales(LiveRead { step: "read the scales of the owners", reason });
    }
    Stage::Decide(plan(observed, now))
}

fn scales_to_read(observed: &Observed) -> Option<Reason> {
    let owners = observed.pods.iter().filter_map(|pod| pod.metadata.controller.as_ref());
    let owners: BTreeMap<_, _> = owners.map(|owner| (owner.uid, format!("{} {}", owner.kind, owner.name))).collect();
    (!owners.is_empty()).then(|| Reason::scale(owners.into_values()))
}

pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut notices = Vec::new();
    if let Err(invalid) = &observed.budget.selects {
        notices.push(notices::pods_failed(observed, invalid));
        return Plan::failed(notices, Failure::lasting(invalid.to_string()));
    }
    if observed.pods.is_empty() {
        notices.push(notices::no_pods(observed));
    }
    let (expected, unread) = match expected(observed) {
        Ok(expected) => (expected, None),
        Err(failure) => {
            let Some(before) = as_before(observed, now) else {
                notices.push(notices::count_failed(observed, &failure));
                return Plan::failed(notices, failure);
            };
            (before, Some(failure))
        }
    };
    let Expected { desired_healthy, pods: expected_pods, unmanaged } = expected;
    if unmanaged > 0 {
        notices.push(notices::unmanaged(observed));
    }
    let Disrupted { running: disrupted_pods, overdue, recheck } = disrupted(observed, now);
    notices.extend(overdue.iter().map(|pod| notices::not_deleted(observed, pod)));
    let is_evicted = |name: &str| disrupted_pods.contains_key(name);
    let healthy = observed.pods.iter().filter(|pod| pod.is_healthy() && !is_evicted(pod.metadata.name()));
    let mut current_healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    if unread.is_some() && expected_pods > 0 {
        // Permissions are only taken away: more pods may be required by now.
        let allowed = observed.budget.status.disruptions_allowed;
        current_healthy = current_healthy.min(desired_healthy.saturating_add(allowed));
    }
    let counts = Counts { current_healthy, desired_healthy, expected_pods, disrupted_pods, unmanaged };
    let timers = [recheck.map(|left| (left, EVICTION_TIMER)), observed.reread.map(|left| (left, SCALE_TIMER))];
    let recheck = timers.into_iter().flatten().min_by_key(|(left, _)| *left);
    Plan { notices, counts: Ok(counts), recheck, unread }
}

impl Plan {
    fn failed(notices: Vec<PlannedEvent>, failure: Failure) -> Self {
        Self { notices, counts: Err(failure), recheck: None, unread: None }
    }
}

impl Reasoned for Stage {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::SeeEvictions(read) | Self::ReadScales(read) => read.reason.clone(),
            Self::Decide(plan) => Reason::of(plan),
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeeEvictions(read) | Self::ReadScales(read) => write!(f, "{read}"),
            Self::Decide(plan) => write!(f, "{plan}"),
        }
    }
}

/// `record NoPods; allow 0 (0 of 0 pods are healthy, 2 required)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { notices, counts, recheck, unread } = self;
        for notice in notices {
            write!(f, "record {}; ", notice.reason)?;
        }
        let allowed = counts.as_ref().map_or(0, Counts::disruptions_allowed);
        write!(f, "allow {allowed} ({})", Reason::of(self))?;
        match (unread, recheck) {
            (Some(_), _) => f.write_str("; retry"),
            (None, Some((recheck, _))) => write!(f, "; recheck in {}", GoDuration(*recheck)),
            (None, None) => Ok(()),
        }
    }
}
