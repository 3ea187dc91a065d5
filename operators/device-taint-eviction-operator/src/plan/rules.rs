//! What the condition of a DeviceTaintRule has to say, and when.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, Reasoned};

use super::due::{end_of, is_used};
use super::reasons::RuleReason;
use crate::objects::{COMPLETED, RuleEffect};
use crate::observe::{Observed, ObservedRule};

/// The least time between two writes of a condition while pods are evicted.
///
/// Upstream: `ruleStatusPeriod`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
pub const RULE_STATUS_PERIOD: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlan {
    pub step: RuleStep,
    pub reason: RuleReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleStep {
    Keep,
    /// Wait until the condition may be written again.
    Wait {
        /// The time until then.
        left: Duration,
    },
    /// Write what the reason says, unless the condition says so already.
    Report,
}

/// Upstream: `maybeUpdateRuleStatus`.
pub fn plan_rule(observed: &ObservedRule, now: Timestamp) -> RulePlan {
    let ObservedRule { rule, pods: _, published, allocated, evicted } = observed;
    if let Some(left) = left(observed, now) {
        return RulePlan { step: RuleStep::Wait { left }, reason: RuleReason::WrittenJustNow };
    }
    let reason = match rule.effect {
        RuleEffect::NoExecute => match pending(observed) {
            (0, _) if *evicted == 0 && rule.is_reported() && rule.has_reason(COMPLETED) => {
                return RulePlan { step: RuleStep::Keep, reason: RuleReason::CompletedBefore };
            }
            (0, _) => RuleReason::NothingPending,
            (pods, namespaces) => RuleReason::Pending { pods, namespaces },
        },
        RuleEffect::None if !rule.is_to_be_simulated() => {
            return RulePlan { step: RuleStep::Keep, reason: RuleReason::Simulated };
        }
        RuleEffect::None => {
            let (pods, namespaces) = pending(observed);
            RuleReason::WouldEvict { published: *published, allocated: *allocated, pods, namespaces }
        }
        RuleEffect::Other => RuleReason::OtherEffect,
    };
    RulePlan { step: RuleStep::Report, reason }
}

/// The time until the condition may be written again; none if it may. A changed spec does not wait.
fn left(observed: &ObservedRule, now: Timestamp) -> Option<Duration> {
    let rule = &observed.rule;
    let written = rule.condition.as_ref().filter(|_| rule.is_reported())?.last_transition_time?;
    let left = written.remaining(RULE_STATUS_PERIOD.as_secs().try_into().ok()?, now)?;
    // The clock of another process may be ahead.
    Some(left.min(RULE_STATUS_PERIOD))
}

/// How many pods the rule evicts, or would evict if its effect were `NoExecute`, and in how many namespaces.
///
/// Upstream: `countPendingPods`.
fn pending(observed: &ObservedRule) -> (usize, usize) {
    let ObservedRule { rule, pods, published: _, allocated: _, evicted: _ } = observed;
    let is_evicted = |user: &&Observed| {
        let Observed { key: _, pod, claims, rules: _, pending: _, by_group } = user;
        pod.as_ref().is_some_and(|pod| {
            let mut used = claims.iter().filter(|used| is_used(used, pod, *by_group));
            !pod.metadata.is_being_deleted()
                && used.any(|used| {
                    let mut selected = used.claim.devices.iter().filter(|device| rule.selects(&device.id));
                    selected.any(|device| end_of(device, &rule.taint).is_some())
                })
        })
    };
    let evicted_pods = pods.iter().filter(is_evicted);
    let namespaces: BTreeSet<&str> = evicted_pods.clone().map(|user| user.key.namespace()).collect();
    (evicted_pods.count(), namespaces.len())
}

impl Reasoned for RulePlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for RulePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, reason } = self;
        match step {
            RuleStep::Keep => write!(f, "keep ({reason})"),
            RuleStep::Wait { left } => write!(f, "wait {} ({reason})", GoDuration(*left)),
            RuleStep::Report => write!(f, "report ({reason})"),
        }
    }
}
