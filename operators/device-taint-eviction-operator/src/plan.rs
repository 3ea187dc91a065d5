//! Whether and when a pod is evicted because of the taints of its devices, and what the condition of a DeviceTaintRule
//! reports.
//!
//! The time of a deletion follows from the taints alone, so a changed taint moves it, unlike the eviction by nodes' taints.
//!
//! Upstream: `pkg/controller/devicetainteviction/device_taint_eviction.go`.

mod due;
mod reasons;
mod rules;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, Reasoned};

use crate::memory::Pending;
use crate::objects::Pod;
use crate::observe::Observed;
pub use due::{Cause, Due, Suspect, due};
pub use reasons::{Reason, RuleReason};
pub use rules::{RULE_STATUS_PERIOD, RulePlan, RuleStep, plan_rule};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether the pending deletion is dropped, with an event.
    pub cancel: bool,
    pub step: Step,
    /// The DeviceTaintRules whose conditions count this pod, or did.
    pub report: Vec<Key>,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Keep,
    Start {
        pending: Pending,
        /// The time until the deletion.
        left: Duration,
    },
    /// Wait until its pending deletion is due.
    Wait {
        /// The time until then.
        left: Duration,
    },
    Evict(Eviction),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    pub pod: Arc<Pod>,
    /// Since when it is due.
    pub due: Time,
    /// The DeviceTaintRules among its causes.
    pub rules: Vec<(Key, Uid)>,
    /// Whether this is the first try, which an event announces.
    pub announce: bool,
    /// The only cause of the eviction by now; none if a DeviceTaintRule explains it.
    pub suspect: Option<Suspect>,
}

/// Decides about one pod.
///
/// Upstream: `handlePod` and `maybeDeletePod`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { key: _, pod, claims, rules: _, pending, by_group: _ } = observed;
    let keep = |cancel, reason| {
        let report = pending.as_ref().map(|pending| pending.rules.clone()).unwrap_or_default();
        Plan { cancel, step: Step::Keep, report, reason }
    };
    let Some(pod) = pod else { return keep(false, Reason::Gone) };
    if pod.metadata.is_being_deleted() {
        return keep(false, Reason::BeingDeleted);
    }
    // A former pod of this name may have left a pending deletion.
    let own = pending.as_ref().filter(|pending| pending.uid == pod.metadata.uid);
    let Some(due) = due(observed) else {
        return keep(own.is_some(), Reason::NotTainted { claims: claims.len() });
    };
    let reason = Reason::Tainted { causes: due.causes.iter().cloned().collect(), due: due.at };
    let step = match due.at.remaining(0, now) {
        None => Step::Evict(evict(pod, &due, own, now)),
        Some(left) => {
            let rules = due.rules().map(|(rule, _)| rule).collect();
            let next = Pending { uid: pod.metadata.uid, due: due.at, rules, is_announced: false };
            if own == Some(&next) {
                return Plan { cancel: false, step: Step::Wait { left }, report: Vec::new(), reason };
            }
            Step::Start { pending: next, left }
        }
    };
    let mut report: Vec<Key> = due.rules().map(|(rule, _)| rule).collect();
    report.extend(pending.iter().flat_map(|pending| pending.rules.iter().cloned()));
    report.sort_unstable();
    report.dedup();
    Plan { cancel: false, step, report, reason }
}

fn evict(pod: &Arc<Pod>, due: &Due, own: Option<&Pending>, now: Timestamp) -> Eviction {
    let is_explained = due.by_rules.is_some_and(|by_rules| by_rules.timestamp() <= now);
    let suspect = due.by_driver.as_ref().filter(|_| !is_explained).map(|(_, suspect)| suspect.clone());
    Eviction {
        pod: Arc::clone(pod),
        due: due.at,
        rules: due.rules().collect(),
        announce: own.is_none_or(|own| !own.is_announced),
        suspect,
    }
}

impl Plan {
    /// The only cause of a due eviction; none if a user's change explains it, or if none is due.
    pub fn suspect(&self) -> Option<&Suspect> {
        match &self.step {
            Step::Evict(eviction) => eviction.suspect.as_ref(),
            Step::Keep | Step::Start { .. } | Step::Wait { .. } => None,
        }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cancel, step, report: _, reason } = self;
        if *cancel {
            f.write_str("cancel, ")?;
        }
        write!(f, "{step} ({reason})")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::Start { pending: _, left } => write!(f, "evict after {}", GoDuration(*left)),
            Self::Wait { left } => write!(f, "wait {}", GoDuration(*left)),
            Self::Evict(Eviction { announce: true, .. }) => f.write_str("evict"),
            Self::Evict(_) => f.write_str("evict again"),
        }
    }
}
