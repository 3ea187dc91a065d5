//! The next status of a budget.
//!
//! Upstream: `updatePdbStatus` and `failSafe`, `pkg/controller/disruption/disruption.go`;
//! `UpdateDisruptionAllowedCondition` and `ConditionsAreUpToDate`,
//! `staging/src/k8s.io/component-helpers/apps/poddisruptionbudget/helpers.go`.

use jiff::Timestamp;
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::time::Time;

use crate::apply::Outcome;
use crate::objects::conditions::DISRUPTION_ALLOWED;
use crate::objects::{BudgetCondition, BudgetStatus, Failure, PodDisruptionBudget, condition_reasons};
use crate::observe::Observed;
use crate::plan::counts::Counts;

/// The next status; none if it equals the written one.
pub fn next_status(observed: &Observed, outcome: &Outcome, now: Timestamp) -> Option<BudgetStatus> {
    let budget = &*observed.budget;
    let status = match &outcome.counts {
        Ok(counts) => counted(budget, counts, now),
        Err(failure) => not_counted(&budget.status, failure, now),
    };
    (status != budget.status).then_some(status)
}

/// Whether a status changes nothing but counts, and permits every eviction that the one before permits.
///
/// A finished eviction is more than a count: a new pod of the same name would count as evicted until its entry is gone.
pub fn has_only_counts(before: &BudgetStatus, next: &BudgetStatus) -> bool {
    let expects =
        |status: &BudgetStatus| (status.observed_generation, status.desired_healthy, status.expected_pods > 0);
    // With `IfHealthyBudget` the apiserver compares these two before it evicts an unready pod.
    let is_disrupted = |status: &BudgetStatus| status.current_healthy < status.desired_healthy;
    let has_failed = |status: &BudgetStatus| {
        status.allowed_condition().is_none_or(|condition| condition.reason == condition_reasons::SYNC_FAILED)
    };
    expects(before) == expects(next)
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
    // If no number changes, the rest of the condition stays too.
    let says_so = |condition: &BudgetCondition| condition.status == is_allowed && condition.reason == reason;
    if status != budget.status || !status.allowed_condition().is_some_and(says_so) {
        status.set_condition(allowed_condition(is_allowed, reason, "", generation, now));
    }
    status
}

/// Allow no eviction while the pods cannot be counted. All other numbers stay, with their generation.
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
