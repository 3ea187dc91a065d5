//! Whole syncs of Indexed Jobs. Upstream: the rows with indexes of `TestControllerSyncJob`,
//! `pkg/controller/job/job_controller_test.go`, and `TestSyncJobWithJobSuccessPolicy`.

use serde_json::json;
use shared::testing::{ObjectBuilder, ago};

use crate::fixtures::{FAILURES, INDEX, Spec, case, check, exits, indexed, long_ago, pod, pod_of};

fn running(index: i32, letter: &str) -> ObjectBuilder {
    pod_of(index, letter, "Running")
}

fn done(index: i32, letter: &str) -> ObjectBuilder {
    pod_of(index, letter, "Succeeded")
}

fn failed(index: i32, letter: &str) -> ObjectBuilder {
    long_ago(pod_of(index, letter, "Failed"))
}

#[test]
fn each_index_is_done_once() {
    check([
        ("no pods yet", case(indexed(2, 5), []), "create 2 (index 0,1)\nsaid: active 2"),
        (
            "done, one in a second attempt",
            case(indexed(2, 3), [done(0, "a"), failed(1, "a"), done(1, "b"), done(2, "a")]),
            "nothing (0 of 0 active)\nsaid: succeeded 3, completed [0-2], -(pi-1a), SuccessCriteriaMet CompletionsReached\nlet go pi-0a pi-1a pi-1b pi-2a\nsaid: succeeded 3, failed 1, completed [0-2], SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        (
            "one fails, none may",
            case(indexed(2, 3).with("backoffLimit", 0), [done(0, "a"), failed(1, "a"), running(2, "a")]),
            "Failed: BackoffLimitExceeded; end pi-2a\nsaid: terminating 1, succeeded 1, completed [0], -(pi-1a pi-2a), FailureTarget BackoffLimitExceeded\nlet go pi-0a pi-1a pi-2a\nsaid: terminating 1, succeeded 1, failed 2, completed [0], FailureTarget BackoffLimitExceeded",
        ),
        (
            "one index is done twice",
            case(indexed(2, 3), [done(0, "a"), done(1, "a"), done(1, "b")]),
            "create 1 (index 2)\nsaid: active 1, succeeded 2, completed [0,1]\nlet go pi-0a pi-1a pi-1b",
        ),
        (
            "gaps are filled, the lowest first",
            case(
                indexed(8, 20),
                [
                    running(0, "a"),
                    done(2, "a"),
                    pod_of(3, "a", "Pending"),
                    done(4, "a"),
                    done(5, "a"),
                    done(7, "a"),
                    done(8, "a"),
                    done(9, "a"),
                ],
            ),
            "create 6 (index 1,6,10-13)\nsaid: active 8, succeeded 6, completed [2,4,5,7-9]\nlet go pi-2a pi-4a pi-5a pi-7a pi-8a pi-9a",
        ),
        (
            "what was done before is not done again",
            case(indexed(5, 5).said("completedIndexes", "1,3").said("succeeded", 2), []),
            "create 3 (index 0,2,4)\nsaid: active 3, succeeded 2, completed [1,3]",
        ),
        (
            "what can't be read is not done",
            case(indexed(5, 4).said("completedIndexes", "0,1-foo,bar"), []),
            "create 3 (index 1-3)\nsaid: active 3, succeeded 1, completed [0]",
        ),
        (
            "a new success is counted by index at once",
            case(indexed(1, 3).said("completedIndexes", "0").said("succeeded", 1), [done(0, "a"), done(1, "a")]),
            "create 1 (index 2)\nsaid: active 1, succeeded 2, completed [0,1]\nlet go pi-0a pi-1a",
        ),
        (
            "a failed pod is replaced",
            case(indexed(1, 1), [failed(0, "a")]),
            "create 1 (index 0)\nsaid: active 1, -(pi-0a)\nlet go pi-0a\nsaid: active 1, failed 1",
        ),
    ]);
}

#[test]
fn pods_without_a_place_go() {
    let odd = |name: &str, phase: &str| pod(name, phase).annotation(INDEX, "one");
    check([
        (
            "without an index",
            case(
                indexed(2, 3),
                [pod("a", "Running"), odd("b", "Running"), odd("c", "Succeeded"), long_ago(odd("d", "Failed"))],
            ),
            "delete a (no index), b (no index)\nsaid: terminating 2\nlet go c d",
        ),
        (
            "two of one index",
            case(indexed(2, 2), [running(0, "a"), running(0, "b").ready(), pod_of(1, "a", "Pending"), running(1, "b")]),
            "delete pi-0a (same index, not ready), pi-1a (same index, earlier phase)\nsaid: active 2, ready 1, terminating 2",
        ),
        (
            "out of range",
            case(indexed(2, 2), [running(2, "a"), pod_of(3, "a", "Pending"), done(4, "a"), failed(5, "a")]),
            "delete pi-2a (index out of range), pi-3a (index out of range)\nsaid: terminating 2\nlet go pi-4a pi-5a",
        ),
        (
            "all of them, three of one index",
            case(
                indexed(6, 6),
                [
                    running(6, "a"),
                    pod_of(6, "b", "Pending"),
                    running(3, "a"),
                    pod_of(3, "b", "Pending"),
                    running(0, "a"),
                    pod_of(0, "b", "Pending"),
                    pod_of(0, "c", "Pending"),
                    pod_of(5, "a", "Pending"),
                ],
            ),
            "delete pi-0c (same index, earlier phase), pi-0b (same index, earlier phase), pi-3b (same index, earlier phase), pi-6a (index out of range), pi-6b (index out of range)\nsaid: active 3, terminating 5",
        ),
        (
            "too many, the worst goes",
            case(indexed(1, 3), [running(0, "a"), running(1, "a").ready()]),
            "delete pi-0a (not ready)\nsaid: active 1, ready 1, terminating 1",
        ),
    ]);
}

#[test]
fn an_elastic_job_grows_and_shrinks() {
    let said = |parallelism, completions| {
        indexed(parallelism, completions).said("completedIndexes", "0-2,4,6,7").said("succeeded", 6).started(ago(9))
    };
    check([
        (
            "smaller",
            case(said(5, 5), [running(3, "a"), running(5, "a")]),
            "delete pi-5a (index out of range)\nsaid: active 1, terminating 1, succeeded 4, completed [0-2,4]",
        ),
        (
            "smaller, and by that done",
            case(said(3, 3), [running(3, "a"), running(5, "a")]),
            "delete pi-3a (index out of range), pi-5a (index out of range)\nsaid: terminating 2, succeeded 3, completed [0-2], SuccessCriteriaMet CompletionsReached",
        ),
        (
            "nothing is wanted any more",
            case(said(0, 0), [running(3, "a")]),
            "delete pi-3a (index out of range)\nsaid: terminating 1, SuccessCriteriaMet CompletionsReached",
        ),
        (
            "smaller, and two more are done",
            case(said(7, 7), [done(1, "b"), done(3, "a")]),
            "create 1 (index 5)\nsaid: active 1, succeeded 6, completed [0-4,6]\nlet go pi-1b pi-3a",
        ),
        (
            "larger",
            case(said(10, 10), [running(3, "a"), running(5, "a")]),
            "create 2 (index 8,9)\nsaid: active 4, succeeded 6, completed [0-2,4,6,7]",
        ),
        (
            "shrunk below what was done",
            case(indexed(2, 2).said("completedIndexes", "3").said("succeeded", 1), [done(1, "a")]),
            "create 1 (index 0)\nsaid: active 1, succeeded 1, completed [1]\nlet go pi-1a",
        ),
    ]);
}

#[test]
fn terminating_pods_keep_their_index_where_only_failed_ones_are_replaced() {
    let going = || [pod("a", "Running").terminating()];
    let policy = |policy: &str| indexed(2, 2).with("podReplacementPolicy", policy);
    check([
        (
            "only failed ones, of no index",
            case(policy("Failed"), going()),
            "create 1 (index 0)\nsaid: active 1, terminating 1",
        ),
        (
            "only failed ones, of index 0",
            case(policy("Failed"), [running(0, "a").terminating()]),
            "create 1 (index 1)\nsaid: active 1, terminating 1",
        ),
        (
            "any",
            case(
                policy("TerminatingOrFailed"),
                [running(0, "a").terminating().set(&["metadata", "deletionTimestamp"], ago(3600).to_string())],
            ),
            "create 2 (index 0,1)\nsaid: active 2, terminating 1, -(pi-0a)\nlet go pi-0a\nsaid: active 2, terminating 1, failed 1",
        ),
    ]);
}

#[test]
fn a_success_policy_ends_a_job_early() {
    let policy = |rules: serde_json::Value| indexed(3, 3).with("successPolicy", json!({ "rules": rules }));
    let first = || policy(json!([{ "succeededIndexes": "0" }]));
    let fail = json!({ "rules": [{ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [5] } }] });
    check([
        (
            "the index that counts",
            case(first(), [done(0, "a"), running(1, "a")]),
            "Complete: SuccessPolicy; end pi-1a\nsaid: terminating 1, succeeded 1, completed [0], SuccessCriteriaMet SuccessPolicy\nlet go pi-0a pi-1a",
        ),
        (
            "another one",
            case(first(), [running(0, "a"), done(1, "a"), running(2, "a")]),
            "nothing (2 of 2 active)\nsaid: active 2, succeeded 1, completed [1]\nlet go pi-1a",
        ),
        (
            "one of two",
            case(policy(json!([{ "succeededIndexes": "0,1", "succeededCount": 1 }])), [done(1, "a")]),
            "Complete: SuccessPolicy\nsaid: succeeded 1, completed [1], SuccessCriteriaMet SuccessPolicy\nlet go pi-1a\nsaid: succeeded 1, completed [1], SuccessCriteriaMet SuccessPolicy, Complete SuccessPolicy, completed",
        ),
        (
            "any two",
            case(policy(json!([{ "succeededCount": 2 }])), [done(1, "a"), done(2, "a")]),
            "Complete: SuccessPolicy\nsaid: succeeded 2, completed [1,2], SuccessCriteriaMet SuccessPolicy\nlet go pi-1a pi-2a\nsaid: succeeded 2, completed [1,2], SuccessCriteriaMet SuccessPolicy, Complete SuccessPolicy, completed",
        ),
        (
            "a failure in the same sync wins",
            case(first().with("podFailurePolicy", fail), [done(0, "a"), exits(pod_of(1, "a", "Failed"), "main", 5)]),
            "Failed: PodFailurePolicy\nsaid: succeeded 1, completed [0], -(pi-1a), FailureTarget PodFailurePolicy\nlet go pi-0a pi-1a\nsaid: succeeded 1, failed 1, completed [0], FailureTarget PodFailurePolicy, Failed PodFailurePolicy",
        ),
        (
            "so do too many failures",
            case(first().with("backoffLimit", 0), [done(0, "a"), failed(1, "a")]),
            "Failed: BackoffLimitExceeded\nsaid: succeeded 1, completed [0], -(pi-1a), FailureTarget BackoffLimitExceeded\nlet go pi-0a pi-1a\nsaid: succeeded 1, failed 1, completed [0], FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "and indexes that have failed, when none is left",
            case(
                first().with("backoffLimitPerIndex", 0),
                [done(0, "a"), failed(1, "a").annotation(FAILURES, "0"), done(2, "a")],
            ),
            "Failed: FailedIndexes\nsaid: succeeded 2, completed [0,2], failed [1], -(pi-1a), FailureTarget FailedIndexes\nlet go pi-0a pi-1a pi-2a\nsaid: succeeded 2, failed 1, completed [0,2], failed [1], FailureTarget FailedIndexes, Failed FailedIndexes",
        ),
        (
            "but not while one is left",
            case(
                first().with("backoffLimitPerIndex", 0),
                [done(0, "a"), failed(1, "a").annotation(FAILURES, "0"), running(2, "a")],
            ),
            "Complete: SuccessPolicy; end pi-2a\nsaid: terminating 1, succeeded 1, completed [0], failed [1], -(pi-1a), SuccessCriteriaMet SuccessPolicy\nlet go pi-0a pi-1a pi-2a\nsaid: terminating 1, succeeded 1, failed 1, completed [0], failed [1], SuccessCriteriaMet SuccessPolicy",
        ),
    ]);
}
