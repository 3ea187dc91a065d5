//! Stale conditions DisruptionTarget: the pod was to be disrupted, and was not in time.
//!
//! Upstream: `nonTerminatingPodHasStaleDisruptionCondition` and `syncStalePodDisruption`,
//! `pkg/controller/disruption/disruption.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use shared::api::condition::FALSE;
use shared::api::list::list;
use shared::api::object::Key;
use shared::api::pod::DISRUPTION_TARGET;
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, Reasoned};

use crate::objects::Pod;
use crate::observe::search::Search;
use crate::observe::stale::StalePod;

/// The age in seconds at which the condition becomes stale.
///
/// Upstream: `stalePodDisruptionTimeout`, `pkg/controller/disruption/disruption.go`.
pub const STALE_SECONDS: i64 = 120;

/// The pause between two searches. With the time that the pages take it is shorter than [`STALE_SECONDS`], so that each
/// pod is found before its condition is stale.
const PERIOD: Duration = Duration::from_secs(90);

/// The pause between two pages: the 300 pages of the largest supported cluster take half a minute.
const PAUSE: Duration = Duration::from_millis(100);

/// The purpose of the timer of such a pod.
pub const TIMER: &str = "the deadline of the pod's disruption";

/// The time until the condition of a pod is stale. None without this condition, or if the pod has ended or is being
/// deleted.
pub fn stale_in(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let target = pod.target.filter(|_| !pod.metadata.is_being_deleted() && !pod.has_ended)?;
    let left = target.since.and_then(|since| since.remaining(STALE_SECONDS, now));
    Some(left.unwrap_or_default())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalePlan {
    Keep(StaleReason),
    Wait { left: Duration, due: Time },
    Clear { preconditions: Preconditions, generation: i64, since: Option<Time> },
}

/// Why the condition is kept or reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StaleReason {
    BeingDeleted,
    Ended,
    /// The pod has no such condition, or the kubelet set it.
    NoTarget,
    /// The pod may still be disrupted.
    NotStale {
        due: Time,
    },
    /// The pod was not disrupted in time.
    Stale {
        since: Option<Time>,
    },
}

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
    let preconditions = Preconditions::of(meta);
    StalePlan::Clear { preconditions, generation: meta.generation, since: target.since }
}

/// The strategic merge patch of a pod's `/status` that resets the condition.
///
/// Upstream: `syncStalePodDisruption`, `pkg/controller/disruption/disruption.go`; `UpdatePodCondition`,
/// `pkg/api/v1/pod/util.go`, replaces the whole condition.
pub fn cleared_target(generation: i64, now: Timestamp) -> Value {
    let condition = json!({
        "type": DISRUPTION_TARGET,
        "status": FALSE,
        "observedGeneration": generation,
        "lastProbeTime": null,
        "lastTransitionTime": Time::of(now),
        "reason": null,
        "message": null,
    });
    json!({ "status": { "conditions": [condition] } })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPlan {
    /// The pods to check, by key, and when.
    pub found: Vec<(Key, Duration)>,
    /// The time until the next page, of this search or the next one.
    pub next: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SearchReason {
    /// The page has this many pods with the condition.
    Found { pods: usize },
}

/// Decide when to check the pods of a page.
pub fn plan_search(observed: &Search, now: Timestamp) -> SearchPlan {
    let due = observed.targets.iter().filter_map(|pod| Some((pod.metadata.key.clone(), stale_in(pod, now)?)));
    let mut found: Vec<(Key, Duration)> = due.collect();
    found.sort_unstable();
    let next = if observed.goes_on { PAUSE } else { PERIOD };
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
            Self::Clear { .. } => write!(f, "reset the condition ({reason})"),
        }
    }
}

impl fmt::Display for SearchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.found.is_empty() {
            f.write_str("nothing (no pod is about to be disrupted)")?;
        } else {
            write!(f, "check {} (about to be disrupted)", list(&self.found, |(key, _)| key.to_string()))?;
        }
        write!(f, "; next page in {}", GoDuration(self.next))
    }
}

impl fmt::Display for StaleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::Ended => f.write_str("has ended"),
            Self::NoTarget => f.write_str("no condition DisruptionTarget"),
            Self::NotStale { due } => write!(f, "may be disrupted until {due}"),
            Self::Stale { since: Some(since) } => write!(f, "not disrupted since {since}"),
            Self::Stale { since: None } => f.write_str("not disrupted since an unknown time"),
        }
    }
}

impl fmt::Display for SearchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Found { pods } = self;
        write!(f, "{pods} pods are about to be disrupted")
    }
}
