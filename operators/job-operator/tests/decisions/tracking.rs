//! The pods that are counted, and the order of the writes. Upstream: `TestTrackJobStatusAndRemoveFinalizers`,
//! `pkg/controller/job/job_controller_test.go`.

mod memory;

use serde_json::json;
use shared::testing::{ObjectBuilder, ago, uid};

use crate::fixtures::{Spec, case, check, indexed, job, long_ago, pod, pod_of, untracked};

fn uncounted(job: ObjectBuilder, succeeded: &[&str], failed: &[&str]) -> ObjectBuilder {
    let uids = |names: &[&str]| names.iter().map(|name| uid(name).to_string()).collect::<Vec<_>>();
    job.said("uncountedTerminatedPods", json!({ "succeeded": uids(succeeded), "failed": uids(failed) }))
}

/// Running, so that nothing but counting is to be done: it has as many active pods as it wants.
fn busy() -> ObjectBuilder {
    job(1, 999)
        .started(ago(60))
        .said("active", 1)
        .said("ready", 0)
        .said("terminating", 0)
        .said("succeeded", 2)
        .said("failed", 3)
}

fn with_active(pods: impl IntoIterator<Item = ObjectBuilder>) -> Vec<ObjectBuilder> {
    pods.into_iter().chain([pod("z", "Running")]).collect()
}

#[test]
fn pods_are_named_then_let_go_then_counted() {
    let a = || pod("a", "Succeeded");
    let b = || long_ago(pod("b", "Failed"));
    check([
        ("nothing new", case(uncounted(busy(), &[], &[]), with_active([])), "nothing (1 of 1 active)"),
        (
            "new ones",
            case(busy(), with_active([a(), b()])),
            "nothing (1 of 1 active)\nsaid: active 1, succeeded 2, failed 3, +(a), -(b)\nlet go a b\nsaid: active 1, succeeded 3, failed 4",
        ),
        (
            "named before",
            case(uncounted(busy(), &["a"], &["b"]), with_active([a(), b()])),
            "nothing (1 of 1 active)\nlet go a b\nsaid: active 1, succeeded 3, failed 4",
        ),
        (
            "named and let go before",
            case(uncounted(busy(), &["a"], &["b"]), with_active([untracked("a", "Succeeded")])),
            "nothing (1 of 1 active)\nsaid: active 1, succeeded 3, failed 4",
        ),
        (
            "named before, and it was sent but not seen that they were let go",
            case(uncounted(busy(), &["a"], &["b"]), with_active([a(), b()])).released(["a", "b"]),
            "nothing (1 of 1 active)\nsaid: active 1, succeeded 3, failed 4",
        ),
        (
            "let go, counted, and still seen with the finalizer",
            case(busy(), with_active([a(), b()])).released(["a", "b"]),
            "nothing (1 of 1 active)",
        ),
        (
            "they can't be let go",
            case(busy(), with_active([a(), b()])).patches_fail(),
            "nothing (1 of 1 active)\nsaid: active 1, succeeded 2, failed 3, +(a), -(b)\nlet go a b",
        ),
        (
            "past and new ones, and none can be let go",
            case(
                uncounted(busy(), &["a"], &["b"]),
                with_active([untracked("a", "Succeeded"), pod("c", "Succeeded"), long_ago(pod("d", "Failed"))]),
            )
            .patches_fail(),
            "nothing (1 of 1 active)\nsaid: active 1, succeeded 3, failed 4, +(c), -(d)\nlet go c d",
        ),
        (
            "failed before, succeeded now",
            case(uncounted(busy(), &[], &["a"]), with_active([a()])),
            "nothing (1 of 1 active)\nlet go a\nsaid: active 1, succeeded 2, failed 4",
        ),
        (
            "without the finalizer they do not count",
            case(busy(), with_active([untracked("a", "Succeeded"), untracked("b", "Failed")])),
            "nothing (1 of 1 active)",
        ),
    ]);
}

#[test]
fn a_status_names_no_more_than_five_hundred() {
    let many = |count: i32| (0..count).map(|number| pod(&format!("p{number:03}"), "Succeeded"));
    let by_index = (0..501).map(|index| pod_of(index, "a", "Succeeded"));
    let start = || job(1, 501).started(ago(60)).said("ready", 0).said("terminating", 0);
    check([
        (
            "some were named before",
            case(uncounted(start(), &[], &["gone", "z"]), many(500).chain([long_ago(pod("z", "Failed"))])),
            "create 1\nsaid: active 1, failed 1, +(499 pods), -(z)\nlet go 499 pods\nsaid: active 1, succeeded 499, failed 1, -(z)",
        ),
        (
            "by index",
            case(indexed(1, 501).started(ago(60)).said("ready", 0).said("terminating", 0), by_index),
            "nothing (0 of 0 active)\nsaid: succeeded 501, completed [0-500], SuccessCriteriaMet CompletionsReached\nlet go 500 pods",
        ),
    ]);
}

#[test]
fn an_end_waits_for_what_is_still_going() {
    let ending = || {
        uncounted(job(1, 1).with("backoffLimit", 0), &[], &["a"])
            .condition("FailureTarget", "True", "BackoffLimitExceeded", "x")
            .started(ago(60))
    };
    check([
        (
            "counted, but one is going",
            case(ending(), [untracked("a", "Running").terminating()]),
            "Failed: BackoffLimitExceeded\nsaid: terminating 1, failed 1, FailureTarget BackoffLimitExceeded",
        ),
        (
            "counted, and gone",
            case(ending(), []),
            "Failed: BackoffLimitExceeded\nsaid: failed 1, FailureTarget BackoffLimitExceeded\nsaid: failed 1, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "not let go",
            case(ending(), [pod("a", "Failed")]).patches_fail(),
            "Failed: BackoffLimitExceeded\nsaid: -(a), FailureTarget BackoffLimitExceeded\nlet go a",
        ),
    ]);
}
