//! The status that follows: its condition, its generation, and when nothing is written.

use disruption_operator::apply::Outcome;
use disruption_operator::objects::{BudgetStatus, Failure};
use disruption_operator::observe::Observed;
use disruption_operator::plan::plan;
use disruption_operator::status::{has_only_counts, next_status};
use serde_json::{Value, json};
use shared::api::time::Time;
use shared::testing::{NOW, ObjectBuilder, ago};

use crate::fixtures::{alone, budget, outcome, pod, synced, with_status};

fn conditions(status: &BudgetStatus) -> Value {
    serde_json::to_value(&status.conditions).unwrap()
}

fn failed(observed: &Observed, message: &str) -> Option<BudgetStatus> {
    let outcome = Outcome { counts: Err(Failure::lasting(message.to_owned())), recheck: None, unread: None };
    next_status(observed, &outcome, NOW)
}

fn two_of_three() -> (ObjectBuilder, [ObjectBuilder; 3]) {
    (budget("minAvailable", 2).generation(7), [pod("a"), pod("b"), pod("c")])
}

#[test]
fn a_condition_says_whether_a_pod_may_be_evicted() {
    let (budget, pods) = two_of_three();
    let condition = |status: &str, reason: &str| {
        json!([{
            "type": "DisruptionAllowed", "status": status, "observedGeneration": 7,
            "lastTransitionTime": NOW.to_string(), "reason": reason, "message": "",
        }])
    };
    assert_eq!(conditions(&synced(&alone(&budget, &pods))), condition("True", "SufficientPods"));
    assert_eq!(conditions(&synced(&alone(&budget, &pods[..2]))), condition("False", "InsufficientPods"));
}

#[test]
fn what_is_written_already_is_not_written_again() {
    let (budget, pods) = two_of_three();
    let state = alone(&budget, &pods);
    let written = with_status(&state, &budget, &synced(&state));
    assert_eq!(next_status(&written, &outcome(plan(&written, NOW)), NOW), None);
    // Every other number is.
    let changes: [fn(&mut BudgetStatus); 5] = [
        |status| status.disruptions_allowed += 1,
        |status| status.current_healthy += 1,
        |status| status.desired_healthy += 1,
        |status| status.expected_pods += 1,
        |status| status.observed_generation -= 1,
    ];
    for change in changes {
        let mut status = synced(&state);
        change(&mut status);
        let written = with_status(&state, &budget, &status);
        assert_eq!(next_status(&written, &outcome(plan(&written, NOW)), NOW), Some(synced(&state)));
    }
}

#[test]
fn only_what_lets_more_pods_be_evicted_has_only_counts() {
    let (budget, pods) = two_of_three();
    let before = synced(&alone(&budget, &pods));
    let next = |change: fn(&mut BudgetStatus)| {
        let mut status = before.clone();
        change(&mut status);
        status
    };
    let more = next(|status| (status.disruptions_allowed, status.current_healthy) = (2, 4));
    assert!(has_only_counts(&before, &more));
    assert!(has_only_counts(&before, &next(|status| status.expected_pods = 4)), "a pod more, which is not ready");
    assert!(!has_only_counts(&more, &before), "it allows fewer");
    let (fewer, none) = (next(|status| status.current_healthy = 1), next(|status| status.current_healthy = 0));
    assert!(has_only_counts(&fewer, &before), "pods that are not ready may be evicted again");
    assert!(!has_only_counts(&before, &fewer), "those may not be evicted any more");
    assert!(has_only_counts(&fewer, &none), "nothing was allowed, and nothing is");
    let changes: [fn(&mut BudgetStatus); 5] = [
        |status| status.desired_healthy = 1,
        |status| status.expected_pods = 0,
        |status| status.observed_generation = 8,
        |status| status.disrupted_pods = [("a".into(), Time::of(NOW))].into(),
        |status| status.conditions.clear(),
    ];
    for change in changes {
        let other = next(change);
        assert!(!has_only_counts(&before, &other) && !has_only_counts(&other, &before), "{other:?}");
    }
    let failed = failed(&with_status(&alone(&budget, &pods), &budget, &before), "no answer").unwrap();
    assert!(!has_only_counts(&failed, &before), "the numbers are known again");
}

#[test]
fn the_transition_time_moves_with_the_status_alone() {
    let (budget, pods) = two_of_three();
    let before = Time::of(ago(60));
    let mut status = synced(&alone(&budget, &pods));
    status.conditions[0].last_transition_time = Some(before);
    let written = with_status(&alone(&budget, &pods), &budget.clone().generation(8), &status);
    let next = synced(&written);
    let condition = &next.conditions[0];
    assert_eq!((condition.last_transition_time, condition.observed_generation), (Some(before), Some(8)));
    let fewer = Observed { pods: written.pods[..2].to_vec(), ..written };
    assert_eq!(synced(&fewer).conditions[0].last_transition_time, Some(Time::of(NOW)));
}

/// Upstream: `TestKeepExistingPDBConditionDuringSync`.
#[test]
fn conditions_of_others_stay() {
    let other = json!({
        "type": "ExistingTestCondition", "status": "True", "lastTransitionTime": NOW.to_string(), "reason": "Test",
        "message": "This is a test condition",
    });
    let budget = budget("minAvailable", 3).set(&["status", "conditions"], json!([other]));
    let written = conditions(&synced(&alone(&budget, &[])));
    assert_eq!((written.as_array().unwrap().len(), &written[0]), (2, &other));
}

/// Upstream: `failSafe`.
#[test]
fn a_sync_that_fails_allows_nothing_and_keeps_all_else() {
    let (budget, pods) = two_of_three();
    let state = alone(&budget, &pods);
    let before = synced(&state);
    let written = with_status(&state, &budget.clone().generation(8), &before);
    let safe = failed(&written, "no").unwrap();
    let expected = BudgetStatus { disruptions_allowed: 0, conditions: safe.conditions.clone(), ..before };
    assert_eq!(safe, expected);
    let condition = json!([{
        "type": "DisruptionAllowed", "status": "False", "observedGeneration": 7,
        "lastTransitionTime": NOW.to_string(), "reason": "SyncFailed", "message": "no",
    }]);
    assert_eq!(conditions(&safe), condition);
    let again = with_status(&written, &budget.clone().generation(8), &safe);
    assert_eq!(failed(&again, "no"), None);
    assert!(failed(&again, "another error").is_some());
    // A successful count is written again, even if nothing else changes.
    let recovered = synced(&Observed { pods: again.pods[..2].to_vec(), ..again });
    assert_eq!((recovered.conditions[0].reason.as_str(), &*recovered.conditions[0].message), ("InsufficientPods", ""));
}

#[test]
fn a_budget_that_was_never_counted_and_cannot_be_has_a_condition_of_no_generation() {
    let safe = failed(&alone(&budget("minAvailable", 1), &[]), "no").unwrap();
    assert_eq!(conditions(&safe)[0].get("observedGeneration"), None);
    assert_eq!(safe.observed_generation, 0);
}
