//! Jobs whose indexes may each fail by themselves. Upstream: `TestSyncJobWithJobBackoffLimitPerIndex`,
//! `pkg/controller/job/job_controller_test.go`.

use serde_json::json;
use shared::testing::{ObjectBuilder, ago};

use crate::fixtures::{FAILURES, IGNORED, Spec, case, check, exits, indexed, pod_of};

fn limited(parallelism: i32, completions: i32, limit: i32) -> ObjectBuilder {
    indexed(parallelism, completions).with("backoffLimit", i32::MAX).with("backoffLimitPerIndex", limit)
}

fn failed(index: i32, letter: &str, failures: i32, seconds: i64) -> ObjectBuilder {
    pod_of(index, letter, "Failed").annotation(FAILURES, &failures.to_string()).created(ago(seconds))
}

fn running(index: i32, letter: &str) -> ObjectBuilder {
    pod_of(index, letter, "Running")
}

fn done(index: i32, letter: &str) -> ObjectBuilder {
    pod_of(index, letter, "Succeeded")
}

#[test]
fn a_failed_pod_is_held_until_another_one_is_there() {
    check([
        (
            "it is too early",
            case(limited(2, 2, 1), [failed(0, "a", 0, 1), running(1, "a")]),
            "nothing (waiting 9s after failures)\nsaid: active 1, failed []",
        ),
        (
            "it is time",
            case(limited(2, 2, 1), [failed(0, "a", 0, 11), running(1, "a")]),
            "create 1 (index 0)\nsaid: active 2, failed []",
        ),
        (
            "the other one is there",
            case(limited(2, 2, 1), [failed(0, "a", 0, 11), running(0, "b"), running(1, "a")]),
            "nothing (2 of 2 active)\nsaid: active 2, failed [], -(pi-0a)\nlet go pi-0a\nsaid: active 2, failed 1, failed []",
        ),
        (
            "it has failed often enough",
            case(limited(2, 2, 1), [failed(0, "a", 1, 0), running(1, "a")]),
            "nothing (1 of 2 active, no index left)\nsaid: active 1, failed [0], -(pi-0a)\nlet go pi-0a\nsaid: active 1, failed 1, failed [0]",
        ),
        (
            "the other one failed too",
            case(limited(1, 2, 3), [failed(0, "a", 0, 30), failed(0, "b", 1, 5)]),
            "nothing (waiting 15s after failures)\nsaid: failed [], -(pi-0a)\nlet go pi-0a\nsaid: failed 1, failed []",
        ),
        (
            "both as often, the later one counts",
            case(limited(1, 2, 3), [failed(0, "a", 1, 5), failed(0, "b", 1, 50)]),
            "nothing (waiting 15s after failures)\nsaid: failed [], -(pi-0b)\nlet go pi-0b\nsaid: failed 1, failed []",
        ),
        (
            "an index out of range",
            case(limited(2, 2, 1), [failed(2, "a", 0, 11), running(0, "a"), running(1, "a")]),
            "nothing (2 of 2 active)\nsaid: active 2, failed []\nlet go pi-2a",
        ),
        (
            "seen to go",
            case(limited(1, 2, 1), [failed(0, "a", 0, 0)]).released(["pi-0a"]),
            "create 1 (index 0)\nsaid: active 1, failed []",
        ),
        (
            "one waits, one need not",
            case(limited(2, 3, 1), [failed(0, "a", 0, 1)]),
            "create 1 (index 1)\nsaid: active 1, failed []",
        ),
        (
            "all wait, the shortest counts",
            case(limited(3, 3, 9), [failed(0, "a", 1, 0), failed(1, "a", 0, 1), failed(2, "a", 2, 0)]),
            "nothing (waiting 9s after failures)\nsaid: failed []",
        ),
        (
            "somebody deletes it meanwhile",
            case(limited(1, 1, 1), [failed(0, "a", 0, 99).terminating()]),
            "nothing (waiting 10s after failures)\nsaid: failed []",
        ),
        (
            "exactly ten seconds",
            case(limited(1, 1, 9), [failed(0, "a", 0, 10)]),
            "create 1 (index 0)\nsaid: active 1, failed []",
        ),
    ]);
}

#[test]
fn indexes_that_have_failed_end_the_job() {
    let said = |job: ObjectBuilder| job.said("failedIndexes", "0").said("failed", 1).started(ago(60));
    check([
        (
            "all are over, one failed",
            case(limited(2, 2, 0), [failed(0, "a", 0, 0), done(1, "a")]),
            "Failed: FailedIndexes\nsaid: succeeded 1, completed [1], failed [0], -(pi-0a), FailureTarget FailedIndexes\nlet go pi-0a pi-1a\nsaid: succeeded 1, failed 1, completed [1], failed [0], FailureTarget FailedIndexes, Failed FailedIndexes",
        ),
        (
            "all failed",
            case(limited(2, 2, 0), [failed(0, "a", 0, 0), failed(1, "a", 0, 0)]),
            "Failed: FailedIndexes\nsaid: failed [0,1], -(pi-0a pi-1a), FailureTarget FailedIndexes\nlet go pi-0a pi-1a\nsaid: failed 2, failed [0,1], FailureTarget FailedIndexes, Failed FailedIndexes",
        ),
        (
            "more failed than may",
            case(said(limited(2, 4, 0).with("maxFailedIndexes", 1)), [failed(1, "a", 0, 0), running(2, "a")]),
            "Failed: MaxFailedIndexesExceeded; end pi-2a\nsaid: terminating 1, failed 1, failed [0,1], -(pi-1a pi-2a), FailureTarget MaxFailedIndexesExceeded\nlet go pi-1a pi-2a\nsaid: terminating 1, failed 3, failed [0,1], FailureTarget MaxFailedIndexesExceeded",
        ),
        (
            "as many failed as may",
            case(said(limited(2, 4, 0).with("maxFailedIndexes", 1)), [running(2, "a"), running(3, "a")]),
            "nothing (2 of 2 active)\nsaid: active 2, failed 1, failed [0]",
        ),
        (
            "a failed index stays failed",
            case(said(limited(2, 3, 0)), [running(1, "a")]),
            "create 1 (index 2)\nsaid: active 2, failed 1, failed [0]",
        ),
        (
            "the limit of the whole Job",
            case(limited(2, 2, 1).with("backoffLimit", 0), [failed(0, "a", 0, 11), running(1, "a")]),
            "Failed: BackoffLimitExceeded; end pi-1a\nsaid: terminating 1, failed [], -(pi-0a pi-1a), FailureTarget BackoffLimitExceeded\nlet go pi-0a pi-1a\nsaid: terminating 1, failed 2, failed [], FailureTarget BackoffLimitExceeded",
        ),
        (
            "no limit any more",
            case(indexed(1, 2).said("failedIndexes", "0").started(ago(60)), [running(1, "a")]),
            "nothing (1 of 1 active)\nsaid: active 1",
        ),
    ]);
}

#[test]
fn a_policy_may_fail_an_index_or_ignore_its_failure() {
    let rule =
        |action: &str| json!({ "rules": [{ "action": action, "onExitCodes": { "operator": "In", "values": [5] } }] });
    let with = |action: &str| limited(2, 2, 1).with("podFailurePolicy", rule(action));
    let exited = |seconds| {
        exits(failed(0, "a", 0, seconds), "main", 5).set(
            &["status", "containerStatuses"],
            json!([{
        "name": "main", "state": { "terminated": { "exitCode": 5, "finishedAt": ago(seconds).to_string() } } }]),
        )
    };
    check([
        (
            "the index fails at once",
            case(with("FailIndex"), [exited(0), running(1, "a")]),
            "nothing (1 of 2 active, no index left)\nsaid: active 1, failed [0], -(pi-0a)\nlet go pi-0a\nsaid: active 1, failed 1, failed [0]",
        ),
        (
            "it is ignored",
            case(with("Ignore"), [exited(11), running(1, "a")]),
            "create 1 (index 0)\nsaid: active 2, failed []",
        ),
        (
            "the Job fails",
            case(with("FailJob"), [exited(11), running(1, "a")]),
            "Failed: PodFailurePolicy; end pi-1a\nsaid: terminating 1, failed [], -(pi-0a pi-1a), FailureTarget PodFailurePolicy\nlet go pi-0a pi-1a\nsaid: terminating 1, failed 2, failed [], FailureTarget PodFailurePolicy",
        ),
        (
            "it is ignored for the third time",
            case(with("Ignore"), [exited(39).annotation(IGNORED, "2"), running(1, "a")]),
            "nothing (waiting 1s after failures)\nsaid: active 1, failed []",
        ),
    ]);
    let counts = |case: crate::fixtures::Case| {
        let plan = job_operator::plan::plan(&case.observed(), shared::testing::NOW);
        let job_operator::plan::Pods::Create(new) = plan.pods else { panic!("{plan}") };
        new.iter().map(|pod| pod.failures.map(|failures| (failures.counted, failures.ignored))).collect::<Vec<_>>()
    };
    assert_eq!(counts(case(with("Ignore"), [exited(11), running(1, "a")])), [Some((0, 1))]);
    assert_eq!(counts(case(with("Count"), [exited(11), running(1, "a")])), [Some((1, 0))]);
    assert_eq!(counts(case(limited(2, 2, 3), [])), [Some((0, 0)); 2]);
    assert_eq!(counts(case(limited(1, 1, 3), [failed(0, "a", 1, 60).annotation(IGNORED, "1")])), [Some((2, 1))]);
    assert_eq!(counts(case(indexed(1, 1), [])), [None]);
}
