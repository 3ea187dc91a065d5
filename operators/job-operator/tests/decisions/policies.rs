//! Pod failure policies and success policies. Upstream: `TestMatchPodFailurePolicy`, `pod_failure_policy_test.go`;
//! `TestMatchSuccessPolicy`, `success_policy_test.go`; `TestSyncJobWithJobPodFailurePolicy`, `job_controller_test.go`.

use job_operator::objects::pod::Pod;
use job_operator::objects::{PodFailurePolicy, SuccessPolicy};
use job_operator::plan::indexed::OrderedIntervals;
use job_operator::plan::pod_failure_policy::match_pod_failure_policy;
use job_operator::plan::success_policy::match_success_policy;
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, ago};

use crate::fixtures::{Spec, case, check, exits, job, pod};

#[track_caller]
fn matches(rules: &Value, pod: &ObjectBuilder, expected: &str) {
    let policy: PodFailurePolicy = serde_json::from_value(json!({ "rules": rules })).unwrap();
    let verdict = match_pod_failure_policy(Some(&policy), &pod.build::<Pod>());
    let action = verdict.action.map_or("none", job_operator::objects::PodFailureAction::as_str);
    let counts = if verdict.counts() { "" } else { ", not counted" };
    let message = verdict.fail_job.map(|message| format!(": {message}")).unwrap_or_default();
    assert_eq!(format!("{action}{counts}{message}"), expected);
}

fn on(action: &str, operator: &str, values: &[i32]) -> Value {
    json!({ "action": action, "onExitCodes": { "operator": operator, "values": values } })
}

fn on_condition(action: &str, type_: &str, status: &str) -> Value {
    json!({ "action": action, "onPodConditions": [{ "type": type_, "status": status }] })
}

#[test]
fn exit_codes_match() {
    let two = || exits(pod("a", "Failed"), "main", 2);
    let message = "FailJob: Container main for pod default/a failed with exit code 2 matching FailJob rule at index";
    matches(&json!([]), &two(), "none");
    matches(&json!([on("FailJob", "In", &[1, 2])]), &two(), &format!("{message} 0"));
    matches(&json!([on("FailJob", "In", &[1])]), &two(), "none");
    matches(&json!([on("FailJob", "NotIn", &[1])]), &two(), &format!("{message} 0"));
    matches(&json!([on("FailJob", "NotIn", &[2])]), &two(), "none");
    matches(&json!([on("FailJob", "Odd", &[2])]), &two(), "none");
    matches(&json!([on("Ignore", "In", &[2]), on("FailJob", "In", &[2])]), &two(), "Ignore, not counted");
    matches(&json!([on("Count", "In", &[2])]), &two(), "Count");
    matches(&json!([on("FailIndex", "In", &[2])]), &two(), "FailIndex");
    matches(&json!([on("Odd", "In", &[2]), on("FailJob", "In", &[2])]), &two(), &format!("{message} 1"));
    matches(&json!([on("FailJob", "NotIn", &[1])]), &exits(pod("a", "Failed"), "main", 0), "none");
    matches(&json!([on("FailJob", "In", &[0])]), &exits(pod("a", "Failed"), "main", 0), "none");
    matches(&json!([on("Count", "In", &[-7])]), &exits(pod("a", "Failed"), "main", -7), "Count");
}

#[test]
fn the_container_counts_and_its_kind_does_not() {
    let named = |name: &str| json!([{ "action": "FailJob", "onExitCodes": { "containerName": name, "operator": "In", "values": [2] } }]);
    let terminated = |name: &str, code: i32| json!({ "name": name, "state": { "terminated": { "exitCode": code } } });
    let both = || {
        pod("a", "Failed")
            .set(&["status", "containerStatuses"], json!([terminated("main", 0), terminated("side", 2)]))
            .set(&["status", "initContainerStatuses"], json!([terminated("init", 3)]))
    };
    let by = |name: &str, code: i32| {
        format!(
            "FailJob: Container {name} for pod default/a failed with exit code {code} matching FailJob rule at index 0"
        )
    };
    matches(&named("main"), &both(), "none");
    matches(&named("side"), &both(), &by("side", 2));
    matches(&json!([on("FailJob", "In", &[3])]), &both(), &by("init", 3));
    matches(&json!([on("FailJob", "In", &[2, 3])]), &both(), &by("side", 2));
}

#[test]
fn conditions_match() {
    let disrupted = |status: &str| {
        pod("a", "Failed").set(
            &["status", "conditions"],
            json!([{ "type": "Other", "status": "True" }, { "type": "DisruptionTarget", "status": status }]),
        )
    };
    let message = "FailJob: Pod default/a has condition DisruptionTarget matching FailJob rule at index 0";
    matches(&json!([on_condition("FailJob", "DisruptionTarget", "True")]), &disrupted("True"), message);
    matches(&json!([on_condition("Ignore", "DisruptionTarget", "True")]), &disrupted("True"), "Ignore, not counted");
    matches(&json!([on_condition("FailIndex", "DisruptionTarget", "True")]), &disrupted("True"), "FailIndex");
    matches(&json!([on_condition("FailJob", "DisruptionTarget", "True")]), &disrupted("False"), "none");
    matches(&json!([on_condition("FailJob", "DisruptionTarget", "False")]), &disrupted("False"), message);
    matches(&json!([on_condition("Count", "DisruptionTarget", "Unknown")]), &disrupted("Unknown"), "Count");
    let unnamed = json!([{ "action": "Count", "onPodConditions": [{ "type": "DisruptionTarget" }] }]);
    matches(&unnamed, &disrupted("True"), "Count");
    // Where both are given, only exit codes count.
    let both = json!([{ "action": "Count", "onExitCodes": { "operator": "In", "values": [1] }, "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] }]);
    matches(&both, &disrupted("True"), "none");
}

#[test]
fn a_policy_decides_what_a_failure_does_to_the_job() {
    let with = |rule: Value| job(1, 1).with("podFailurePolicy", json!({ "rules": [rule] }));
    let two = || exits(pod("a", "Failed"), "main", 2);
    let evicted = || {
        pod("a", "Failed")
            .set(&["status", "conditions"], json!([{ "type": "DisruptionTarget", "status": "True" }]))
            .created(ago(11))
    };
    check([
        (
            "the Job fails",
            case(with(on("FailJob", "In", &[2])), [two()]),
            "Failed: PodFailurePolicy\nsaid: -(a), FailureTarget PodFailurePolicy\nlet go a\nsaid: failed 1, FailureTarget PodFailurePolicy, Failed PodFailurePolicy",
        ),
        (
            "it does not count",
            case(with(on("Ignore", "In", &[2])).with("backoffLimit", 0), [two()]),
            "nothing (waiting 10s after failures)\nsaid: all zero\nlet go a",
        ),
        (
            "it counts",
            case(with(on("Count", "In", &[2])).with("backoffLimit", 0), [two()]),
            "Failed: BackoffLimitExceeded\nsaid: -(a), FailureTarget BackoffLimitExceeded\nlet go a\nsaid: failed 1, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "another code counts",
            case(with(on("Ignore", "In", &[3])).with("backoffLimit", 0), [two()]),
            "Failed: BackoffLimitExceeded\nsaid: -(a), FailureTarget BackoffLimitExceeded\nlet go a\nsaid: failed 1, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "an eviction does not count",
            case(with(on_condition("Ignore", "DisruptionTarget", "True")).with("backoffLimit", 0), [evicted()]),
            "create 1\nsaid: active 1\nlet go a",
        ),
        (
            "a pod that is going is no failure yet",
            case(with(on("FailJob", "In", &[2])), [pod("a", "Running").terminating()]),
            "nothing (0 of 1 active, waiting for 1 terminating)\nsaid: terminating 1",
        ),
        (
            "a container that has ended does not make its pod failed",
            case(with(on("FailJob", "In", &[2])), [exits(pod("a", "Running"), "main", 2)]),
            "nothing (1 of 1 active)\nsaid: active 1",
        ),
        (
            "no rules at all",
            case(job(1, 1).with("podFailurePolicy", json!({ "rules": null })), [pod("a", "Running")]),
            "nothing (1 of 1 active)\nsaid: active 1",
        ),
        (
            "what still runs goes too",
            case(
                job(2, 2).with("podFailurePolicy", json!({ "rules": [on("FailJob", "In", &[2])] })),
                [two(), pod("b", "Running")],
            ),
            "Failed: PodFailurePolicy; end b\nsaid: terminating 1, -(a b), FailureTarget PodFailurePolicy\nlet go a b\nsaid: terminating 1, failed 2, FailureTarget PodFailurePolicy",
        ),
    ]);
}

/// Upstream: `trackJobStatusAndRemoveFinalizers` asks the policy about each pod that it counts, whatever its phase.
#[test]
fn a_policy_is_asked_about_pods_that_run_when_their_job_fails() {
    let late = |rules: Value| {
        job(3, 3).with("activeDeadlineSeconds", 1).started(ago(9)).with("podFailurePolicy", json!({ "rules": rules }))
    };
    let disrupted = pod("b", "Running").set(
        &["status", "conditions"],
        json!([{ "type": "Ready", "status": "True" }, { "type": "DisruptionTarget", "status": "True" }]),
    );
    let pods = || [pod("a", "Running"), disrupted.clone(), exits(pod("c", "Running"), "main", 2)];
    let ended = "Failed: DeadlineExceeded; end a, b, c\n";
    let rest = "FailureTarget DeadlineExceeded\nlet go a b c\nsaid: terminating 3";
    let rows = [
        (
            json!([on_condition("Ignore", "DisruptionTarget", "True")]),
            format!("{ended}said: terminating 3, -(a c), {rest}, failed 2, FailureTarget DeadlineExceeded"),
        ),
        (
            json!([on("Ignore", "In", &[2])]),
            format!("{ended}said: terminating 3, -(a b), {rest}, failed 2, FailureTarget DeadlineExceeded"),
        ),
    ];
    for (rules, expected) in rows {
        assert_eq!(case(late(rules), pods()).sync(), expected);
    }
}

#[test]
fn a_success_policy_is_met_by_its_first_rule_that_is() {
    let check = |rules: Value, succeeded: &str, expected: Option<usize>| {
        let policy: SuccessPolicy = serde_json::from_value(json!({ "rules": rules })).unwrap();
        let succeeded = OrderedIntervals::parse(succeeded, 10);
        let rule = match_success_policy(Some(&policy), 10, &succeeded);
        assert_eq!(rule, expected, "{rules}");
    };
    check(json!([]), "0-9", None);
    check(json!([{ "succeededCount": 1 }]), "", None);
    check(json!([{ "succeededIndexes": "" }]), "1-3", None);
    check(json!([{ "succeededCount": 0 }]), "", None);
    check(json!([{ "succeededCount": 2 }]), "4,7", Some(0));
    check(json!([{ "succeededCount": 3 }]), "4,7", None);
    check(json!([{ "succeededIndexes": "0-2" }]), "0-3", Some(0));
    check(json!([{ "succeededIndexes": "0-2" }]), "0,1,3-9", None);
    check(json!([{ "succeededIndexes": "0-2,7", "succeededCount": 2 }]), "1,7,9", Some(0));
    check(json!([{ "succeededIndexes": "0-2,7", "succeededCount": 3 }]), "1,7,9", None);
    check(json!([{ "succeededIndexes": "0,3", "succeededCount": 5 }]), "0-3", Some(0));
    check(json!([{ "succeededIndexes": "invalid-form" }, { "succeededCount": 1 }]), "1", Some(1));
    check(json!([{ "succeededIndexes": "8,15" }]), "8", Some(0));
    check(json!([{ "succeededCount": 5 }, { "succeededCount": 1 }, { "succeededCount": 1 }]), "1", Some(1));
    assert_eq!(match_success_policy(None, 10, &OrderedIntervals::parse("0-9", 10)), None);
}
