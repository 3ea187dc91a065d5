//! Whether to empty a namespace, of which kinds and in which order, and what follows from the remaining objects.
//!
//! [`pass`] decides from the cache whether a sync is due. Then [`plan`], [`plan_content`] and [`next_step`] decide in turn,
//! each after another live read.
//!
//! Upstream: `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`.

mod reasons;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::resource::{PODS, Resource};
use shared::api::time::Time;
use shared::working::decisions::{self, Reasoned};

use crate::objects::{Emptied, KUBERNETES, LiveNamespace, Namespace, Round, TERMINATING};
use crate::observe::{Observed, Served};
pub use reasons::{ContentReason, NextReason, Reason, Remains};

/// Upstream: `finalizerEstimateSeconds`.
const FINALIZER_SECONDS: i64 = 15;

/// Whether a namespace is to be read, and emptied of all that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Why, or why not.
    pub reason: Reason,
}

pub fn pass(namespace: &Namespace) -> Pass {
    let since = namespace.metadata.deletion;
    Pass { reason: since.map_or(Reason::NotDeleted, |since| Reason::BeingDeleted { since }) }
}

impl Pass {
    pub fn is_due(&self) -> bool {
        matches!(self.reason, Reason::BeingDeleted { .. })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Nothing(Reason),
    Empty {
        /// The body for `/status`, if the phase must be written first.
        phase: Option<Value>,
        since: Time,
    },
}

pub fn plan(observed: &Observed) -> Plan {
    let Observed { namespace } = observed;
    let Some(since) = namespace.deletion() else { return Plan::Nothing(Reason::NotDeleted) };
    if namespace.finalizers().next().is_none() {
        return Plan::Nothing(Reason::Finalized);
    }
    let phase = (namespace.phase() != TERMINATING).then(|| {
        let mut body = namespace.0.clone();
        body["status"]["phase"] = TERMINATING.into();
        body
    });
    Plan::Empty { phase, since }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub since: Time,
    /// Pods, which come first: everything else waits until no pod is left.
    pub pods: Option<KindToEmpty>,
    pub others: Vec<KindToEmpty>,
    /// Why there may be more kinds.
    pub undiscovered: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindToEmpty {
    pub resource: Resource,
    /// Whether all its objects can be deleted at once.
    pub can_delete_collection: bool,
    pub can_list: bool,
}

/// Upstream: `deleteAllContent`.
pub fn plan_content(served: Served, since: Time) -> Content {
    let Served { discovery, failure: undiscovered } = served;
    let deletable = discovery.preferred().filter(|served| served.resource.namespaced && served.has_verbs(&["delete"]));
    let mut others: Vec<KindToEmpty> = deletable
        .map(|served| KindToEmpty {
            resource: served.resource.clone(),
            can_delete_collection: served.has_verbs(&["deletecollection"]),
            can_list: served.has_verbs(&["list"]),
        })
        .collect();
    others.sort_by(|a, b| a.resource.cmp(&b.resource));
    let pods = others.iter().position(|kind| kind.resource == PODS).map(|at| others.remove(at));
    Content { since, pods, others, undiscovered }
}

/// Judges the remaining objects of a kind, which have `grace_seconds` to end.
///
/// Upstream: `deleteAllContentForGroupVersionResource`.
pub fn judge(
    kind: &KindToEmpty,
    namespace: &str,
    grace_seconds: i64,
    remaining: usize,
    finalizers: BTreeMap<String, usize>,
) -> Emptied {
    let nothing = Emptied::nothing(kind.resource.clone());
    if remaining == 0 {
        return nothing;
    }
    let (estimate_seconds, error) = if grace_seconds != 0 {
        (grace_seconds, None)
    } else if finalizers.is_empty() {
        let gvr = kind.resource.gvr();
        (0, Some(format!("unexpected items still remain in namespace: {namespace} for gvr: {gvr}")))
    } else {
        (FINALIZER_SECONDS, None)
    };
    Emptied { estimate_seconds, remaining, finalizers, error, ..nothing }
}

/// The grace period, or 0 once the namespace's deletion is that old.
///
/// Upstream: `estimateGracefulTermination`.
pub fn remaining_grace(grace_seconds: i64, since: Time, now: Timestamp) -> i64 {
    let passed = now.as_second().saturating_sub(since.second());
    if passed >= grace_seconds { 0 } else { grace_seconds }
}

/// The decision after a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Finalize {
        /// The body for `/finalize`.
        body: Value,
        kept: Vec<String>,
    },
    /// Start another round when the remaining objects should be gone.
    After(Duration, Remains),
    Failed {
        errors: Vec<String>,
        /// The errors by kind.
        reason: NextReason,
    },
}

/// Decides after a round. A namespace with remaining objects is synced again after half of their time, and after
/// `sync_period` at the latest (0 means no limit): pods may end long before their grace period.
///
/// Upstream: `worker`, `pkg/controller/namespace/namespace_controller.go`, and `finalizeNamespace`.
pub fn next_step(observed: &Observed, outcome: &Round, sync_period: Duration) -> Next {
    let Observed { namespace } = observed;
    let pods = outcome.pods.iter().filter_map(|pods| {
        let error = pods.error.as_ref()?;
        Some(format!("failed to delete pods for namespace: {}, err: {error}", namespace.name()))
    });
    let others = outcome.others.iter().filter_map(|kind| kind.error.clone());
    let errors: Vec<String> = outcome.undiscovered.iter().cloned().chain(pods).chain(others).collect();
    let remains = Remains::of(outcome);
    if !errors.is_empty() {
        let reason = NextReason::failed(outcome, &remains);
        return Next::Failed { errors, reason };
    }
    let estimate = outcome.kinds().map(|kind| kind.estimate_seconds).max().unwrap_or(0);
    match u64::try_from(estimate) {
        Ok(0) | Err(_) => finalize(namespace),
        Ok(seconds) => {
            let delay = Duration::from_secs(seconds / 2 + 1);
            Next::After(if sync_period.is_zero() { delay } else { delay.min(sync_period) }, remains)
        }
    }
}

/// Upstream: `finalizeNamespace`.
fn finalize(namespace: &LiveNamespace) -> Next {
    let others = namespace.finalizers().filter(|finalizer| *finalizer != KUBERNETES);
    let mut kept: Vec<String> = others.map(str::to_owned).collect();
    kept.sort_unstable();
    kept.dedup();
    let mut spec = namespace.0["spec"].clone();
    spec["finalizers"] = json!(kept);
    let metadata = &namespace.0["metadata"];
    let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": spec });
    Next::Finalize { body, kept }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::BeingDeleted { since } => {
                write!(f, "read live, then delete all content (being deleted since {since})")
            }
            reason @ (Reason::NotDeleted | Reason::Finalized) => write!(f, "nothing ({reason})"),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Nothing(_) => "nothing",
            Self::Empty { phase: None, .. } => "empty",
            Self::Empty { phase: Some(_), .. } => "set phase, empty",
        };
        write!(f, "{what} ({})", self.why())
    }
}

/// `delete pods, then 41 kinds (all served kinds)`.
impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.pods.is_some() { "delete pods, then " } else { "delete " })?;
        write!(f, "{} kinds ({})", self.others.len(), self.why())
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finalize { .. } => write!(f, "finalize ({})", self.why()),
            Self::After(delay, remains) => write!(f, "again after {delay:?} ({remains})"),
            Self::Failed { reason, .. } => write!(f, "again ({reason})"),
        }
    }
}

impl Plan {
    fn why(&self) -> Reason {
        match self {
            Self::Nothing(reason) => *reason,
            Self::Empty { phase: _, since } => Reason::BeingDeleted { since: *since },
        }
    }
}

impl Content {
    fn why(&self) -> ContentReason {
        ContentReason::of(self.others.len() + usize::from(self.pods.is_some()), self.undiscovered.as_deref())
    }
}

impl Next {
    fn why(&self) -> NextReason {
        match self {
            Self::Finalize { body: _, kept } => NextReason::Empty { kept: kept.clone() },
            Self::After(_, remains) => NextReason::NotEmpty(remains.in_short()),
            Self::Failed { errors: _, reason } => reason.clone(),
        }
    }
}

impl Reasoned for Pass {
    fn reason(&self) -> impl decisions::Reason {
        self.reason
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl Reasoned for Content {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl Reasoned for Next {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}
