//! The status of a budget, and of a pod whose disruption never came.
//!
//! Left out: conditions of others, which stay as they are; and the resourceVersion under which a status is written,
//! which is `apply`'s.
//!
//! Upstream: `updatePdbStatus` and `failSafe`, `pkg/controller/disruption/disruption.go`;
//! `UpdateDisruptionAllowedCondition` and `ConditionsAreUpToDate`,
//! `staging/src/k8s.io/component-helpers/apps/poddisruptionbudget/helpers.go`.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::pod::DISRUPTION_TARGET;
use shared::api::time::Time;

use crate::apply::Outcome;
use crate::objects::conditions::DISRUPTION_ALLOWED;
use crate::objects::{BudgetCondition, BudgetStatus, PodDisruptionBudget, condition_reasons};
use crate::observe::Observed;
use crate::plan::{Counts, Failure};

/// The status, if it is another one than before.
pub fn next_status(observed: &Observed, outcome: &Outcome, now: Timestamp) -> Option<BudgetStatus> {
    let budget = &*observed.budget;
    let status = match &outcome.counts {
        Ok(counts) => counted(budget, counts, now),
        Err(failure) => not_counted(&budget.status, failure, now),
    };
    (status != budget.status).then_some(status)
}

/// Whether a status can wait, because it allows what the one before allowed and at most more. An eviction that came or
/// went is told at once, and so is another number of pods that must be healthy.
pub fn can_wait(before: &BudgetStatus, next: &BudgetStatus) -> bool {
    let told = |status: &BudgetStatus| (status.observed_generation, status.desired_healthy, status.expected_pods > 0);
    // With `IfHealthyBudget` the apiserver compares these two before it evicts a pod that is not ready.
    let is_disrupted = |status: &BudgetStatus| status.current_healthy < status.desired_healthy;
    let has_failed = |status: &BudgetStatus| {
        status.allowed_condition().is_none_or(|condition| condition.reason == condition_reasons::SYNC_FAILED)
    };
    told(before) == told(next)
        && before.disrupted_pods == next.disrupted_pods
        && before.disruptions_allowed <= next.disruptions_allowed
        && (is_disrupted(before) || !is_disrupted(next))
        && !has_failed(before)
        && !has_failed(next)
}

fn counted(budget: &PodDisruptionBudget, counts: &Counts, now: Timestamp) -> BudgetStatus {
    let generation = budget.metadata.generation;
    let mut status = BudgetStatus {
        observed_generation: generation,
        disrupted_pods: counts.disrupted_pods.clone(),
        disruptions_allowed: counts.disruptions_allowed(),
        current_healthy: counts.current_healthy,
        desired_healthy: counts.desired_healthy,
        expected_pods: counts.expected_pods,
        conditions: budget.status.conditions.clone(),
    };
    let (is_allowed, reason) = match status.disruptions_allowed {
        1.. => (TRUE, condition_reasons::SUFFICIENT_PODS),
        _ => (FALSE, condition_reasons::INSUFFICIENT_PODS),
    };
    // Where the numbers stay, the other fields of the condition stay too.
    let says_so = |condition: &BudgetCondition| condition.status == is_allowed && condition.reason == reason;
    if status != budget.status || !status.allowed_condition().is_some_and(says_so) {
        status.set_condition(allowed_condition(is_allowed, reason, "", generation, now));
    }
    status
}

/// Nothing may be evicted while the pods cannot be counted. All other numbers stay, and so does the generation that
/// they are about.
fn not_counted(before: &BudgetStatus, failure: &Failure, now: Timestamp) -> BudgetStatus {
    let mut status = BudgetStatus { disruptions_allowed: 0, ..before.clone() };
    let (reason, generation) = (condition_reasons::SYNC_FAILED, before.observed_generation);
    status.set_condition(allowed_condition(FALSE, reason, &failure.message, generation, now));
    status
}

fn allowed_condition(status: &str, reason: &str, message: &str, generation: i64, now: Timestamp) -> BudgetCondition {
    BudgetCondition {
        type_: Text::new(DISRUPTION_ALLOWED),
        status: Text::new(status),
        observed_generation: (generation != 0).then_some(generation),
        last_transition_time: Some(Time::of(now)),
        reason: Text::new(reason),
        message: message.into(),
    }
}

/// The strategic merge patch of a pod's `/status` after which nothing outside of it is about to end it.
///
/// Upstream: `syncStalePodDisruption`, `pkg/controller/disruption/disruption.go`; `UpdatePodCondition`,
/// `pkg/api/v1/pod/util.go`, leaves nothing of the condition that was there.
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
