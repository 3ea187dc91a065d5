//! The five conditions, in upstream's words.

use namespace_operator::objects::{Emptied, LiveNamespace, Round};
use namespace_operator::observe::Observed;
use namespace_operator::status::next_status;
use serde_json::{Value, json};
use shared::api::resource::{DEPLOYMENTS, JOBS};
use shared::testing::NOW;

use crate::fixtures::{deleted, deployments_held, emptied, failed, held, pods_remain, round, with};

/// `type status reason: message`, one a line.
fn conditions(body: &Value) -> Vec<String> {
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
    let all = body["status"]["conditions"].as_array().unwrap().iter();
    all.map(|condition| {
        let [name, status, reason, message] = ["type", "status", "reason", "message"].map(|f| text(condition, f));
        format!("{name} {status} {reason}: {message}")
    })
    .collect()
}

const WELL: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered",
    "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed",
    "NamespaceDeletionContentFailure False ContentDeleted: \
     All content successfully deleted, may be waiting on finalization",
    "NamespaceContentRemaining False ContentRemoved: All content successfully removed",
    "NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished",
];

/// `expected` replaces the conditions of the same type.
#[track_caller]
fn check(outcome: &Round, expected: &[&str]) {
    let body = next_status(&deleted(&["kubernetes"]), outcome, NOW).unwrap();
    let kind = |line: &str| line.split(' ').next().unwrap().to_owned();
    let lines = WELL.map(|well| expected.iter().find(|line| kind(line) == kind(well)).copied().unwrap_or(well));
    assert_eq!(conditions(&body), lines);
}

#[test]
fn all_five_are_always_written() {
    check(&round(vec![emptied(DEPLOYMENTS)]), &[]);
}

#[test]
fn what_remains_is_counted_by_kind_and_by_finalizer() {
    check(
        &deployments_held(),
        &[
            "NamespaceContentRemaining True SomeResourcesRemain: \
             Some resources are remaining: deployments.apps has 1 resource instances",
            "NamespaceFinalizersRemaining True SomeFinalizersRemain: \
             Some content in the namespace has finalizers remaining: custom.io/finalizer in 1 resource instances",
        ],
    );
    check(
        &round(vec![held(JOBS, 2, &[("b", 2), ("a", 1)]), held(DEPLOYMENTS, 3, &[("a", 3)])]),
        &[
            "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: \
             deployments.apps has 3 resource instances, jobs.batch has 2 resource instances",
            "NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers \
             remaining: a in 4 resource instances, b in 2 resource instances",
        ],
    );
}

/// Upstream, of `TestProcessContentTotals`: "just remaining". Nobody keeps it, so that it remains is a failure as well.
#[test]
fn what_remains_without_a_finalizer_is_counted_too() {
    let unexpected = "unexpected items still remain in namespace: ns for gvr: batch/v1, Resource=jobs";
    let failure = "NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all resource types";
    check(
        &round(vec![Emptied { remaining: 5, ..failed(JOBS, unexpected) }]),
        &[
            &format!("{failure}, 1 remaining: {unexpected}"),
            "NamespaceContentRemaining True SomeResourcesRemain: \
             Some resources are remaining: jobs.batch has 5 resource instances",
        ],
    );
}

#[test]
fn nothing_is_said_of_what_remains_while_pods_do() {
    check(&pods_remain(30), &[]);
}

#[test]
fn failures_are_told_in_order() {
    check(
        &Round {
            undiscovered: Some("Discovery failed for some groups, 1 failing: x".to_owned()),
            ..round(vec![failed(JOBS, "z"), failed(DEPLOYMENTS, "a")])
        },
        &[
            "NamespaceDeletionDiscoveryFailure True DiscoveryFailed: Discovery failed for some groups, 1 failing: x",
            "NamespaceDeletionContentFailure True ContentDeletionFailed: \
             Failed to delete all resource types, 2 remaining: a, z",
        ],
    );
}

/// Upstream, of `TestUpdateConditions`: "leave different order", "replace with success", "write new failure".
#[test]
fn conditions_that_are_there_keep_their_places() {
    let known = ["NamespaceContentRemaining", "NamespaceDeletionDiscoveryFailure"];
    let known = known.map(|name| json!({ "type": name, "status": "True", "reason": "r", "message": "m" }));
    let namespace = with(deleted(&["kubernetes"]), "/status", json!({ "phase": "Terminating", "conditions": known }));
    let failure = Round { undiscovered: Some("x".to_owned()), ..round(Vec::new()) };
    let body = next_status(&namespace, &failure, NOW).unwrap();
    let discovery = "NamespaceDeletionDiscoveryFailure True DiscoveryFailed: x";
    assert_eq!(conditions(&body), [WELL[3], discovery, WELL[1], WELL[2], WELL[4]]);
}

#[test]
fn what_does_not_change_is_not_written() {
    let body = next_status(&deleted(&["kubernetes"]), &deployments_held(), NOW).unwrap();
    let written = Observed { namespace: LiveNamespace(body) };
    assert_eq!(next_status(&written, &deployments_held(), NOW), None);
}

#[test]
fn the_transition_time_moves_with_the_status_alone_and_others_conditions_stay() {
    let condition = |reason: &str| {
        json!({ "type": "NamespaceDeletionContentFailure", "status": "False", "reason": reason, "message": "m",
                "lastTransitionTime": "2020-01-01T00:00:00Z" })
    };
    let other = json!({ "type": "Other", "status": "True" });
    let status = json!({ "phase": "Terminating", "conditions": [other, condition("x")] });
    let namespace = with(deleted(&["kubernetes"]), "/status", status);
    let body = next_status(&namespace, &round(Vec::new()), NOW).unwrap();
    let all = body["status"]["conditions"].as_array().unwrap();
    assert_eq!((all.len(), &all[0]), (6, &other));
    assert_eq!(
        (all[1]["reason"].as_str(), all[1]["lastTransitionTime"].as_str()),
        (Some("ContentDeleted"), Some("2020-01-01T00:00:00Z"))
    );
    let body = next_status(&namespace, &round(vec![failed(JOBS, "z")]), NOW).unwrap();
    assert_eq!(body["status"]["conditions"][1]["lastTransitionTime"], "2026-01-01T12:00:00Z");
}
