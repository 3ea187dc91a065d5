//! Whole syncs of Jobs without indexes. Upstream: `TestControllerSyncJob`, `TestSyncJobWithJobPodFailurePolicy` and their
//! neighbours, `pkg/controller/job/job_controller_test.go`.

use jiff::SignedDuration;
use serde_json::json;
use shared::api::time::Time;
use shared::testing::{NOW, ago};

use crate::fixtures::{Spec, case, check, job, long_ago, orphan, pod, untracked};

#[test]
fn pods_are_made_up_to_what_is_missing() {
    let running = |name: &str| pod(name, "Running");
    let done = |name: &str| pod(name, "Succeeded");
    check([
        ("no pods yet", case(job(2, 5), []), "create 2\nsaid: active 2"),
        ("work queue, one of two", case(job(2, None), [running("a")]), "create 1\nsaid: active 2"),
        (
            "work queue, one has succeeded",
            case(job(2, None), [running("a"), done("b")]),
            "nothing (1 of 1 active)\nsaid: active 1, +(b)\nlet go b\nsaid: active 1, succeeded 1",
        ),
        (
            "work queue, one succeeded, one failed, none is active",
            case(job(2, None), [done("a"), pod("b", "Failed")]),
            "nothing (0 of 0 active)\nsaid: +(a), -(b), SuccessCriteriaMet CompletionsReached\nlet go a b\nsaid: succeeded 1, failed 1, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        (
            "too many active",
            case(job(2, 5), [running("a").ready(), running("b").ready(), running("c").ready()]),
            "delete a (like those that stay, lower uid)\nsaid: active 2, ready 2, terminating 1",
        ),
        (
            "only what is left to complete",
            case(job(3, 4).said("succeeded", 2), [running("a"), running("b"), running("c")]),
            "delete a (like those that stay, lower uid)\nsaid: active 2, terminating 1, succeeded 2",
        ),
        ("slow start stops", case(job(100, 100), []).at_most(10), "create 100\nsaid: active 10"),
        ("more than one sync makes", case(job(1200, 1200), []), "create 500\nsaid: active 500"),
        (
            "deletions fail",
            case(job(1, 5), [running("a"), running("b")]).at_most(0),
            "delete a (like those that stay, lower uid)\nsaid: active 2",
        ),
        (
            "creation fails, old failures stay",
            case(job(2, 5).said("failed", 1), []).at_most(0),
            "create 2\nsaid: failed 1",
        ),
        (
            "nothing is seen yet",
            case(job(2, 5), []).outstanding(),
            "nothing (waiting to see 1 creation)\nsaid: all zero",
        ),
        (
            "an orphan is adopted and counts",
            case(job(2, 5), [orphan("a", "Running")]),
            "adopt a (selected, and nobody's); create 1\nsaid: active 2",
        ),
        (
            "an orphan that has ended is adopted and counted",
            case(job(1, 1), [orphan("a", "Succeeded")]),
            "adopt a (selected, and nobody's)\nsaid: +(a), SuccessCriteriaMet CompletionsReached\nlet go a\nsaid: succeeded 1, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        (
            "an adopted pod that is one too many loses the finalizer it was given",
            case(job(1, 5), [orphan("a", "Pending"), running("b").ready()]),
            "adopt a (selected, and nobody's); delete a (earlier phase)\nsaid: active 1, ready 1, terminating 1",
        ),
        (
            "an own pod that does not match is released",
            case(job(1, 1), [running("a").label("job", "no")]),
            "release a (selected no more); create 1\nsaid: active 1",
        ),
        (
            "a pod without finalizer counts for nothing",
            case(job(1, 1), [untracked("a", "Succeeded")]),
            "create 1\nsaid: active 1",
        ),
    ]);
}

#[test]
fn terminating_pods_count_as_the_replacement_policy_says() {
    let going = |name: &str| pod(name, "Running").terminating();
    let four = || [going("a"), going("b"), going("c"), going("d")];
    let failed = || long_ago(pod("b", "Failed"));
    let only_failed = |job: shared::testing::ObjectBuilder| job.with("podReplacementPolicy", "Failed");
    let all = || [pod("a", "Running"), failed(), long_ago(going("c"))];
    check([
        (
            "work queue, replaced when failed",
            case(only_failed(job(1, None)), all()),
            "nothing (1 of 1 active)\nsaid: active 1, terminating 1, -(b)\nlet go b\nsaid: active 1, terminating 1, failed 1",
        ),
        (
            "work queue, replaced at once",
            case(job(1, None), all()),
            "nothing (1 of 1 active)\nsaid: active 1, terminating 1, -(b c)\nlet go b c\nsaid: active 1, terminating 1, failed 2",
        ),
        (
            "more going than there is room",
            case(only_failed(job(1, 1)), four().into_iter().chain([pod("e", "Running"), pod("f", "Running")])),
            "delete e (like those that stay, lower uid)\nsaid: active 1, terminating 5",
        ),
        (
            "a pod failure policy implies it",
            case(job(1, 1).with("podFailurePolicy", json!({ "rules": [] })), four()),
            "nothing (0 of 1 active, waiting for 4 terminating)\nsaid: terminating 4",
        ),
        (
            "they have failed, and the next ones wait",
            case(job(2, 2).with("backoffLimit", 9), four().map(long_ago)),
            "nothing (waiting 80s after failures)\nsaid: terminating 4, -(a b c d)\nlet go a b c d\nsaid: terminating 4, failed 4",
        ),
    ]);
}

#[test]
fn failures_delay_the_next_pods() {
    let failed = |name: &str, seconds| pod(name, "Failed").created(ago(seconds));
    check([
        (
            "a new failure",
            case(job(2, 2), [pod("a", "Running").ready(), failed("b", 0)]),
            "nothing (waiting 10s after failures)\nsaid: active 1, ready 1, -(b)\nlet go b\nsaid: active 1, ready 1, failed 1",
        ),
        (
            "an older one",
            case(job(2, 2), [pod("a", "Running").ready(), failed("b", 11)]),
            "create 1\nsaid: active 2, ready 1, -(b)\nlet go b\nsaid: active 2, ready 1, failed 1",
        ),
        (
            "an earlier one",
            case(job(1, 1), []).backoff(1, ago(4)),
            "nothing (waiting 6s after failures)\nsaid: all zero",
        ),
        ("the record says none failed", case(job(1, 1), []).backoff(0, NOW), "create 1\nsaid: active 1"),
        (
            "a success resets it",
            case(job(2, 5), [pod("a", "Succeeded").created(ago(1)), failed("b", 2)]),
            "create 2\nsaid: active 2, +(a), -(b)\nlet go a b\nsaid: active 2, succeeded 1, failed 1",
        ),
        (
            "at the same instant",
            case(job(2, 5), [pod("a", "Succeeded"), pod("b", "Failed")]),
            "create 2\nsaid: active 2, +(a), -(b)\nlet go a b\nsaid: active 2, succeeded 1, failed 1",
        ),
    ]);
}

#[test]
fn a_job_ends_when_enough_pods_have_succeeded_or_too_many_failed() {
    let failed = |name: &str| long_ago(pod(name, "Failed"));
    let done = |name: &str| pod(name, "Succeeded");
    let zero = || job(1, 1).with("backoffLimit", 0);
    check([
        (
            "the last one succeeds",
            case(job(1, 1), [done("a")]),
            "nothing (0 of 0 active)\nsaid: +(a), SuccessCriteriaMet CompletionsReached\nlet go a\nsaid: succeeded 1, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        (
            "more than enough succeed",
            case(job(2, 2).said("succeeded", 1), [done("a"), done("b")]),
            "nothing (0 of 0 active)\nsaid: succeeded 1, +(a b), SuccessCriteriaMet CompletionsReached\nlet go a b\nsaid: succeeded 3, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        (
            "one may not fail, and does",
            case(zero(), [failed("a")]),
            "Failed: BackoffLimitExceeded\nsaid: -(a), FailureTarget BackoffLimitExceeded\nlet go a\nsaid: failed 1, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "one may fail, and does",
            case(job(1, 1).with("backoffLimit", 1), [failed("a")]),
            "create 1\nsaid: active 1, -(a)\nlet go a\nsaid: active 1, failed 1",
        ),
        (
            "one may fail, two do",
            case(job(1, 1).with("backoffLimit", 1), [failed("a"), failed("b")]),
            "Failed: BackoffLimitExceeded\nsaid: -(a b), FailureTarget BackoffLimitExceeded\nlet go a b\nsaid: failed 2, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "what still runs counts as failed",
            case(job(2, 2).with("backoffLimit", 0), [failed("a"), pod("b", "Running")]),
            "Failed: BackoffLimitExceeded; end b\nsaid: terminating 1, -(a b), FailureTarget BackoffLimitExceeded\nlet go a b\nsaid: terminating 1, failed 2, FailureTarget BackoffLimitExceeded",
        ),
        (
            "not all can be deleted",
            case(job(2, 2).with("backoffLimit", 0), [failed("a"), pod("b", "Running")]).at_most(0),
            "Failed: BackoffLimitExceeded; end b\nsaid: active 1, -(a)\nlet go a\nsaid: active 1, failed 1",
        ),
        (
            "not before all is seen",
            case(zero(), [failed("a")]).outstanding(),
            "Failed: BackoffLimitExceeded; waiting to see 1 creation\nsaid: -(a)\nlet go a\nsaid: failed 1",
        ),
    ]);
}

#[test]
fn a_job_ends_when_it_takes_too_long_or_restarts_too_often() {
    let failed = |name: &str| long_ago(pod(name, "Failed"));
    let restarted = |name: &str, phase: &str, count| pod(name, phase).restarts(count);
    let on_failure = |limit: i32| {
        job(2, 2).with("backoffLimit", limit).set(&["spec", "template", "spec", "restartPolicy"], "OnFailure")
    };
    let zero = || job(1, 1).with("backoffLimit", 0);
    let deadline = |job: shared::testing::ObjectBuilder| job.with("activeDeadlineSeconds", 10).started(ago(10));
    check([
        (
            "too long",
            case(deadline(job(1, 1)), []),
            "Failed: DeadlineExceeded\nsaid: FailureTarget DeadlineExceeded\nsaid: FailureTarget DeadlineExceeded, Failed DeadlineExceeded",
        ),
        (
            "too long, with a pod",
            case(deadline(job(1, 1)), [pod("a", "Running")]),
            "Failed: DeadlineExceeded; end a\nsaid: terminating 1, -(a), FailureTarget DeadlineExceeded\nlet go a\nsaid: terminating 1, failed 1, FailureTarget DeadlineExceeded",
        ),
        (
            "too long and too many failures",
            case(deadline(zero()), [failed("a")]),
            "Failed: BackoffLimitExceeded\nsaid: -(a), FailureTarget BackoffLimitExceeded\nlet go a\nsaid: failed 1, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "too long, and it was said that it has not failed",
            case(deadline(job(1, 1)).condition("Failed", "False", "x", "y"), []),
            "Failed: DeadlineExceeded\nsaid: not Failed x, FailureTarget DeadlineExceeded\nsaid: Failed DeadlineExceeded, FailureTarget DeadlineExceeded",
        ),
        (
            "too long, but suspended",
            case(deadline(job(1, 1)).with("suspend", true), []),
            "nothing (suspended)\nsaid: not started, Suspended JobSuspended",
        ),
        (
            "not too long yet",
            case(job(1, 1).with("activeDeadlineSeconds", 11).started(ago(10)), [pod("a", "Running")]),
            "nothing (1 of 1 active)\nsaid: active 1",
        ),
        ("no restart at all", case(on_failure(0), [restarted("a", "Running", 0)]), "create 1\nsaid: active 2"),
        (
            "one restart",
            case(on_failure(1), [restarted("a", "Running", 1)]),
            "Failed: BackoffLimitExceeded; end a\nsaid: terminating 1, -(a), FailureTarget BackoffLimitExceeded\nlet go a\nsaid: terminating 1, failed 1, FailureTarget BackoffLimitExceeded",
        ),
        (
            "one each",
            case(on_failure(2), [restarted("a", "Running", 1), restarted("b", "Pending", 1)]),
            "Failed: BackoffLimitExceeded; end a, b\nsaid: terminating 2, -(a b), FailureTarget BackoffLimitExceeded\nlet go a b\nsaid: terminating 2, failed 2, FailureTarget BackoffLimitExceeded",
        ),
        (
            "fewer than allowed",
            case(on_failure(3), [restarted("a", "Running", 1), restarted("b", "Pending", 1)]),
            "nothing (2 of 2 active)\nsaid: active 2",
        ),
    ]);
}

#[test]
fn an_announced_end_is_kept() {
    let failing = |job: shared::testing::ObjectBuilder| {
        job.condition("FailureTarget", "True", "PodFailurePolicy", "why").started(ago(60))
    };
    let succeeding = |job: shared::testing::ObjectBuilder| {
        job.condition("SuccessCriteriaMet", "True", "SuccessPolicy", "why").started(ago(60))
    };
    check([
        (
            "failing, no pods left",
            case(failing(job(1, 1)), []),
            "Failed: PodFailurePolicy\nsaid: FailureTarget PodFailurePolicy\nsaid: FailureTarget PodFailurePolicy, Failed PodFailurePolicy",
        ),
        (
            "failing, a pod is still going",
            case(failing(job(1, 1)), [pod("a", "Running").terminating()]),
            "Failed: PodFailurePolicy\nsaid: terminating 1, -(a), FailureTarget PodFailurePolicy\nlet go a\nsaid: terminating 1, failed 1, FailureTarget PodFailurePolicy",
        ),
        (
            "failing, though enough have succeeded",
            case(failing(job(1, 1)), [pod("a", "Succeeded")]),
            "Failed: PodFailurePolicy\nsaid: +(a), FailureTarget PodFailurePolicy\nlet go a\nsaid: succeeded 1, FailureTarget PodFailurePolicy, Failed PodFailurePolicy",
        ),
        (
            "succeeding, no pods left",
            case(succeeding(job(2, 2)), []),
            "Complete: SuccessPolicy\nsaid: SuccessCriteriaMet SuccessPolicy\nsaid: SuccessCriteriaMet SuccessPolicy, Complete SuccessPolicy, completed",
        ),
        (
            "succeeding, though too many have failed",
            case(succeeding(job(1, 1).with("backoffLimit", 0)), [pod("a", "Failed")]),
            "Complete: SuccessPolicy\nsaid: -(a), SuccessCriteriaMet SuccessPolicy\nlet go a\nsaid: failed 1, SuccessCriteriaMet SuccessPolicy, Complete SuccessPolicy, completed",
        ),
        (
            "succeeding, what still runs is not counted",
            case(succeeding(job(2, 2)), [pod("a", "Running")]),
            "Complete: SuccessPolicy; end a\nsaid: terminating 1, SuccessCriteriaMet SuccessPolicy\nlet go a",
        ),
        (
            "not announced after all",
            case(
                job(1, 1).condition("FailureTarget", "False", "x", "y").condition(
                    "SuccessCriteriaMet",
                    "False",
                    "x",
                    "y",
                ),
                [pod("a", "Running")],
            ),
            "nothing (1 of 1 active)\nsaid: active 1, not FailureTarget x, not SuccessCriteriaMet x",
        ),
        (
            "not announced, and then it fails",
            case(job(1, 1).with("backoffLimit", 0).condition("FailureTarget", "False", "x", "y"), [pod("a", "Failed")]),
            "Failed: BackoffLimitExceeded\nsaid: -(a), not FailureTarget x, FailureTarget BackoffLimitExceeded\nlet go a\nsaid: failed 1, not FailureTarget x, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
    ]);
}

#[test]
fn a_suspended_job_has_no_pods() {
    let suspended = || job(2, 5).with("suspend", true);
    let two = || [pod("a", "Running").ready(), pod("b", "Pending")];
    let was_suspended = || job(2, 5).condition("Suspended", "True", "JobSuspended", "Job suspended");
    check([
        (
            "suspended with pods",
            case(suspended().started(ago(60)), two()),
            "delete a (suspended), b (suspended)\nsaid: terminating 2, not started, Suspended JobSuspended",
        ),
        (
            "suspended, not all is seen",
            case(suspended().started(ago(60)), two()).outstanding(),
            "nothing (waiting to see 1 creation)\nsaid: active 2, ready 1",
        ),
        (
            "suspended from the start",
            case(suspended(), []),
            "nothing (suspended)\nsaid: not started, Suspended JobSuspended",
        ),
        (
            "still suspended",
            case(
                suspended()
                    .condition("Suspended", "True", "JobSuspended", "Job suspended")
                    .said("ready", 0)
                    .said("terminating", 0),
                [],
            ),
            "nothing (suspended)",
        ),
        (
            "suspended, and a pod failed before",
            case(suspended().started(ago(60)), [pod("a", "Failed")]),
            "nothing (suspended)\nsaid: -(a), not started, Suspended JobSuspended\nlet go a\nsaid: failed 1, not started, Suspended JobSuspended",
        ),
        (
            "suspended, and by now done",
            case(job(2, 2).with("suspend", true).started(ago(60)), [pod("a", "Succeeded"), pod("b", "Succeeded")]),
            "nothing (suspended)\nsaid: +(a b), SuccessCriteriaMet CompletionsReached\nlet go a b\nsaid: succeeded 2, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        (
            "suspended, and nothing is wanted",
            case(job(1, 0).with("suspend", true), []),
            "nothing (suspended)\nsaid: not started, SuccessCriteriaMet CompletionsReached\nsaid: not started, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        ("resumed", case(was_suspended(), []), "create 2\nsaid: active 2, not Suspended JobResumed"),
        (
            "suspended and being deleted",
            case(suspended().started(ago(60)).terminating(), two()),
            "nothing (being deleted)\nsaid: active 2, ready 1\nlet go a b",
        ),
        (
            "resumed long ago",
            case(
                job(1, 1).condition("Suspended", "False", "JobResumed", "Job resumed").started(ago(9)),
                [pod("a", "Running")],
            ),
            "nothing (1 of 1 active)\nsaid: active 1, not Suspended JobResumed",
        ),
    ]);
}

#[test]
fn a_job_that_is_being_deleted_lets_its_pods_go() {
    check([
        (
            "in all states",
            case(job(3, 3).terminating(), [pod("a", "Pending"), pod("b", "Running"), pod("c", "Succeeded")]),
            "nothing (being deleted)\nsaid: active 2, +(c)\nlet go a b c\nsaid: active 2, succeeded 1",
        ),
        (
            "one failed too many",
            case(job(1, 1).with("backoffLimit", 0).terminating(), [pod("a", "Failed")]),
            "Failed: BackoffLimitExceeded\nsaid: -(a), FailureTarget BackoffLimitExceeded\nlet go a\nsaid: failed 1, FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded",
        ),
        (
            "it adopts nothing",
            case(job(1, 1).terminating(), [orphan("a", "Succeeded")]),
            "nothing (being deleted)\nsaid: all zero",
        ),
        (
            "it releases nothing",
            case(job(1, 1).terminating(), [pod("a", "Running").label("job", "no")]),
            "nothing (being deleted)\nsaid: all zero",
        ),
    ]);
}

#[test]
fn a_settled_job_is_left_alone() {
    let said = job(1, 1).started(ago(9)).said("active", 1).said("ready", 1).said("terminating", 0);
    check([("running and said so", case(said, [pod("a", "Running").ready()]), "nothing (1 of 1 active)")]);
    let leave =
        |job: shared::testing::ObjectBuilder| job_operator::plan::plan(&case(job, []).observed(), NOW).to_string();
    assert_eq!(leave(job(1, 1).condition("Complete", "True", "", "")), "nothing (finished)");
    assert_eq!(leave(job(1, 1).condition("Failed", "True", "", "")), "nothing (finished)");
    assert_eq!(leave(job(1, 1).with("managedBy", "example.com/x")), "nothing (managed by example.com/x)");
    assert_eq!(leave(job(1, 1).with("managedBy", "kubernetes.io/job-controller")), "create 1");
    assert_eq!(leave(job(1, 1).with("completionMode", "Odd")), "nothing (unknown completion mode)");
    assert_eq!(
        leave(job(1, 1).with("selector", json!({ "matchExpressions": [{ "key": "a", "operator": "Odd" }] }))),
        "nothing (invalid selector: \"Odd\" is not a valid label selector operator)"
    );
}

#[test]
fn the_clock_of_a_job_begins_anew_when_it_is_resumed() {
    let start = |job: shared::testing::ObjectBuilder| case(job, []).tracking().1.status.start_time;
    let resumed = job(2, 5).condition("Suspended", "True", "JobSuspended", "Job suspended").started(ago(60));
    assert_eq!(start(resumed.clone()), Some(Time::of(NOW)));
    assert_eq!(start(resumed.with("suspend", true)), Some(Time::of(ago(60))), "it was said to be suspended before");
    assert_eq!(start(job(2, 5).with("suspend", true).started(ago(60))), None);
    assert_eq!(start(job(2, 5).started(ago(60))), Some(Time::of(ago(60))));
}

#[test]
fn a_job_is_looked_at_again_when_time_alone_changes_what_is_to_be_done() {
    let wake = |case: crate::fixtures::Case, now| {
        job_operator::plan::plan(&case.observed(), now).wake.map(|(delay, _)| delay.as_millis())
    };
    let deadline = |seconds: i64| job(1, 1).with("activeDeadlineSeconds", seconds).started(ago(4));
    let running = || [pod("a", "Running")];
    assert_eq!(wake(case(job(1, 1), running()), NOW), None);
    assert_eq!(wake(case(deadline(10), running()), NOW), Some(6_000));
    assert_eq!(wake(case(deadline(i64::MAX), running()), NOW).map(|wake| wake > 1 << 40), Some(true));
    assert_eq!(wake(case(deadline(4), running()), NOW), None, "it ends now");
    assert_eq!(wake(case(deadline(10).with("suspend", true), []), NOW), None);
    assert_eq!(wake(case(job(1, 1), []).backoff(1, ago(4)), NOW), Some(6_000));
    assert_eq!(wake(case(deadline(9), []).backoff(1, ago(4)), NOW), Some(5_000), "what comes first");
    assert_eq!(wake(case(job(1, 1), []).backoff(1, ago(10)), NOW - SignedDuration::from_millis(300)), Some(1_000));
    assert_eq!(wake(case(job(1, 1), running()).outstanding(), NOW), Some(300_000));
}
