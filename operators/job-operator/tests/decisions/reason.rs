//! Why a Job is left alone, waits, or ends, as programs read it.

use job_operator::observe::OrphanPod;
use job_operator::plan::ending::Cause;
use job_operator::plan::orphan::{plan_live_read, plan_orphan};
use job_operator::plan::plan;
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, ago};
use shared::working::decisions::stage;

use crate::fixtures::{Case, FAILURES, Spec, case, exits, indexed, job, long_ago, orphan, pod, pod_of};

/// The reason of the first decision.
fn reason(case: &Case) -> Value {
    stage(&plan(&case.observed(), NOW)).reason
}

#[track_caller]
fn check(case: &Case, expected: impl Into<Value>) {
    assert_eq!(reason(case), expected.into());
}

/// Why the Job ends, in the first decision and, where no pod is left, in the second: as JSON and as text.
#[track_caller]
fn check_end(case: &Case, reason: &str, cause: &Value, text: &str) {
    let expected =
        json!({ "ends": { "condition": "Failed", "reason": reason, "cause": cause, "active": 0, "terminating": 0 } });
    check(case, expected);
    let (_, tracking) = case.tracking();
    assert_eq!(stage(&tracking).reason["ends"]["cause"], *cause);
    let ending = tracking.end.unwrap().ending;
    assert_eq!(ending.cause.to_string(), text);
}

fn numbers(active: usize, wanted: usize, terminating: usize, failed: i64, completions: impl Into<Value>) -> Value {
    json!({ "active": active, "wanted": wanted, "terminating": terminating, "succeeded": 0, "failed": failed,
        "completions": completions.into() })
}

#[test]
fn a_job_that_is_left_alone_says_why() {
    let alone = |job: ObjectBuilder| case(job, []);
    let complete = job(1, 1).condition("Complete", "True", "CompletionsReached", "");
    check(&alone(complete), json!({ "finished": { "condition": "Complete", "reason": "CompletionsReached" } }));
    let failed = job(1, 1).condition("Failed", "True", "DeadlineExceeded", "");
    check(&alone(failed), json!({ "finished": { "condition": "Failed", "reason": "DeadlineExceeded" } }));
    let external = job(1, 1).with("managedBy", "example.com/x");
    check(&alone(external), json!({ "managedBy": { "controller": "example.com/x" } }));
    check(&alone(job(1, 1).with("completionMode", "Odd")), json!({ "unknownCompletionMode": { "mode": "Odd" } }));
    let selector = json!({ "matchExpressions": [{ "key": "job", "operator": "Odd" }] });
    let error = "\"Odd\" is not a valid label selector operator";
    check(&alone(job(1, 1).with("selector", selector)), json!({ "invalidSelector": { "error": error } }));
    check(&alone(job(1, 1).terminating()), json!("beingDeleted"));
    let bare = job(1, 1).with("template", json!({ "metadata": { "labels": { "job": "pi" } } }));
    let error = "unable to create pods, the template has no spec";
    check(&alone(bare), json!({ "invalidTemplate": { "error": error } }));
    let waiting = json!({ "waiting": { "creations": 1, "deletions": 0, "expires": "2026-01-01T12:05:00Z" } });
    check(&alone(job(1, 1)).outstanding(), waiting);
}

#[test]
fn a_job_that_goes_on_says_by_which_numbers() {
    check(&case(job(2, 5), []), json!({ "parallelism": numbers(0, 2, 0, 0, 5) }));
    check(&case(job(2, None), [pod("a", "Running")]), json!({ "parallelism": numbers(1, 2, 0, 0, Value::Null) }));
    let suspended = job(1, 1).with("suspend", true);
    check(&case(suspended.clone(), [pod("a", "Running")]), json!({ "suspended": { "active": 1 } }));
    check(&case(suspended, []), json!({ "suspended": { "active": 0 } }));
    let replacing = job(2, 2).with("podReplacementPolicy", "Failed");
    let going = [pod("a", "Running"), pod("b", "Running").terminating()];
    check(&case(replacing, going), json!({ "waitingForTerminating": numbers(1, 2, 1, 0, 2) }));
    let failed = pod_of(0, "a", "Failed").annotation(FAILURES, "1");
    let limited = indexed(2, 2).with("backoffLimitPerIndex", 1);
    check(&case(limited, [failed, pod_of(1, "a", "Running")]), json!({ "noIndexLeft": numbers(1, 2, 0, 1, 2) }));
}

#[test]
fn a_back_off_says_after_how_many_failures_and_until_when() {
    let waiting = |failures: i64, seconds: u64, next: &str| json!({ "backoff": { "failures": failures, "waitSeconds": seconds, "next": next } });
    check(&case(job(1, 1), []).backoff(2, ago(5)), waiting(2, 15, "2026-01-01T12:00:15Z"));
    check(&case(job(1, 1), []).backoff(1, ago(4)), waiting(1, 6, "2026-01-01T12:00:06Z"));
    let failed = exits(pod_of(0, "a", "Failed").annotation(FAILURES, "1"), "main", 1);
    let by_index = case(indexed(1, 1).with("backoffLimitPerIndex", 3), [failed]);
    let expected =
        json!({ "backoff": { "failures": 2, "index": 0, "waitSeconds": 20, "next": "2026-01-01T12:00:20Z" } });
    check(&by_index, expected);
    let (delay, purpose) = plan(&by_index.observed(), NOW).wake.unwrap();
    assert_eq!((delay.as_secs(), purpose), (20, "the back-off of its pods"));
}

#[test]
fn an_end_says_which_limit_was_passed_by_what() {
    let failed = || long_ago(pod("a", "Failed"));
    let cause = json!({ "backoffLimit": { "failed": 1, "limit": 0 } });
    let limited = case(job(1, 1).with("backoffLimit", 0), [failed()]);
    check_end(&limited, "BackoffLimitExceeded", &cause, "1 failed, limit 0");

    let late = case(job(1, 1).with("activeDeadlineSeconds", 10).started(ago(15)), []);
    let cause = json!({ "activeDeadline": { "seconds": 10, "since": "2026-01-01T11:59:45Z" } });
    check_end(&late, "DeadlineExceeded", &cause, "active since 2026-01-01T11:59:45Z, deadline 10s");

    let fails = json!({ "rules": [
        { "action": "Ignore", "onExitCodes": { "operator": "In", "values": [1] } },
        { "action": "FailJob", "onExitCodes": { "operator": "In", "values": [42] } },
    ] });
    let policy = case(job(1, 1).with("podFailurePolicy", fails), [exits(failed(), "main", 42)]);
    let cause = json!({ "podFailurePolicy": { "rule": 1, "pod": "a" } });
    check_end(&policy, "PodFailurePolicy", &cause, "rule 1 about pod a");

    let per_index = indexed(1, 2).with("backoffLimitPerIndex", 0);
    let indexes = case(per_index.clone(), [long_ago(pod_of(0, "a", "Failed")), pod_of(1, "a", "Succeeded")]);
    let cause = json!({ "failedIndexes": { "failed": 1, "completions": 2 } });
    check_end(&indexes, "FailedIndexes", &cause, "1 of 2 indexes failed");
    let indexes = case(per_index.with("maxFailedIndexes", 0), [long_ago(pod_of(0, "a", "Failed"))]);
    let cause = json!({ "maxFailedIndexes": { "failed": 1, "limit": 0 } });
    check_end(&indexes, "MaxFailedIndexesExceeded", &cause, "1 indexes failed, limit 0");

    let announced = job(1, 1).condition("FailureTarget", "True", "DeadlineExceeded", "");
    check_end(&case(announced, []), "DeadlineExceeded", &json!("announced"), "as announced");
}

#[test]
fn restarts_and_running_pods_of_an_end_are_counted() {
    let restarted = pod("a", "Running")
        .set(&["status", "containerStatuses"], json!([{ "name": "main", "restartCount": 2, "state": {} }]));
    let on_failure = job(1, 1).with("backoffLimit", 1).set(&["spec", "template", "spec", "restartPolicy"], "OnFailure");
    let cause = json!({ "restarts": { "restarts": 2, "limit": 1 } });
    let ends = json!({ "condition": "Failed", "reason": "BackoffLimitExceeded", "cause": cause, "active": 1, "terminating": 0 });
    check(&case(on_failure, [restarted]), json!({ "ends": ends }));
}

#[test]
fn a_success_says_by_which_rule_or_how_many() {
    let policy = json!({ "rules": [{ "succeededIndexes": "1" }, { "succeededCount": 1 }] });
    let by_rule = case(indexed(2, 3).with("successPolicy", policy), [pod_of(0, "a", "Succeeded")]);
    let (_, tracking) = by_rule.tracking();
    let ending = tracking.end.unwrap().ending;
    assert_eq!((&*ending.message, ending.cause), ("Matched rules at index 1", Cause::SuccessPolicy { rule: 1 }));

    let (text, tracking) = case(job(1, 1), [pod("a", "Succeeded")]).tracking();
    assert_eq!(text, "nothing (0 of 0 active)");
    let cause = json!({ "completions": { "succeeded": 1, "completions": 1 } });
    let ends = json!({ "condition": "Complete", "reason": "CompletionsReached", "cause": cause, "terminating": 0, "release": 1 });
    assert_eq!(stage(&tracking).reason, json!({ "ends": ends }));
}

#[test]
fn counting_says_what_waits_for_it() {
    let second = |case: Case| stage(&case.tracking().1).reason;
    let ended = json!({ "ended": { "succeeded": 1, "failed": 1, "release": 2 } });
    assert_eq!(second(case(job(1, 5), [pod("a", "Succeeded"), long_ago(pod("b", "Failed"))])), ended);
    assert_eq!(second(case(job(1, 1), [pod("a", "Running")])), "statusDiffers");
    let said = job(1, 1).started(NOW).said("active", 1).said("ready", 0).said("terminating", 0);
    assert_eq!(second(case(said, [pod("a", "Running")])), "counted");
}

#[test]
fn a_pod_that_may_have_lost_its_job_names_it() {
    let observed = |pod: &ObjectBuilder, job: Option<ObjectBuilder>| OrphanPod {
        pod: pod.build(),
        job: job.map(|job| job.build()),
        is_cached: true,
        is_job_cached: true,
    };
    let why = |job: Option<ObjectBuilder>| stage(&plan_orphan(&observed(&pod("a", "Running"), job))).reason;
    assert_eq!(why(None), json!({ "gone": { "job": "pi" } }));
    assert_eq!(why(Some(job(1, 1))), json!({ "running": { "job": "pi" } }));
    let external = job(1, 1).with("managedBy", "example.com/x");
    assert_eq!(why(Some(external)), json!({ "managedBy": { "job": "pi", "controller": "example.com/x" } }));
    let untracked = plan_orphan(&observed(&orphan("a", "Running"), None));
    assert_eq!(stage(&untracked).reason, "notTracked");

    let behind = OrphanPod { is_job_cached: false, ..observed(&pod("a", "Running"), None) };
    let look = stage(&plan_live_read(&behind).unwrap());
    assert_eq!(
        (look.text.as_str(), look.reason),
        ("read its Job (pi may not be cached yet)", json!({ "job": { "job": "pi" } }))
    );
    assert_eq!(plan_live_read(&observed(&pod("a", "Running"), None)), None);
    assert_eq!(plan_live_read(&OrphanPod { job: Some(job(1, 1).build()), ..behind }), None);
}
