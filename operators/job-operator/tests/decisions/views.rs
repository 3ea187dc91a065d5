//! The fields that are read of a Job and of its pods. Upstream: `TestGetFinishedTime`, `backoff_utils_test.go`; the
//! API's defaults.

use job_operator::objects::pod::{JobAnnotations, Pod};
use job_operator::objects::{CompletionMode, Job, PodReplacementPolicy};
use serde_json::{Value, json};
use shared::api::time::Time;
use shared::testing::{self, NOW, ObjectBuilder, ago};

use crate::fixtures::{FAILURES, FINALIZER, IGNORED, INDEX, job, pod};

#[test]
fn a_pod_tells_when_it_ended() {
    let terminated = |name: &str, seconds: i64| json!({ "name": name, "state": { "terminated": { "finishedAt": ago(seconds).to_string() } } });
    let running = |name: &str| json!({ "name": name, "state": { "running": {} } });
    let with = |pod: ObjectBuilder, statuses: Value| pod.set(&["status", "containerStatuses"], statuses);
    let not_ready = |pod: ObjectBuilder, status: &str| {
        pod.set(
            &["status", "conditions"],
            json!([{ "type": "Ready", "status": status, "lastTransitionTime": ago(7).to_string() }]),
        )
    };
    let old = || pod("a", "Failed").created(ago(99));
    let deleted = |pod: ObjectBuilder| pod.terminating().set(&["metadata", "deletionGracePeriodSeconds"], 30);
    let sidecar = |pod: ObjectBuilder, status: Value| {
        pod.set(&["spec", "initContainers"], json!([{ "name": "side", "restartPolicy": "Always" }, { "name": "init" }]))
            .set(&["status", "initContainerStatuses"], json!([status, terminated("init", 1)]))
    };
    let check = |pod: ObjectBuilder, seconds: i64| {
        assert_eq!(pod.build::<Pod>().finish, Some(Time::of(ago(seconds))), "{pod:?}");
    };
    check(with(old(), json!([terminated("x", 20), terminated("y", 10)])), 10);
    check(sidecar(with(old(), json!([terminated("x", 20)])), terminated("side", 5)), 5);
    check(not_ready(sidecar(with(old(), json!([terminated("x", 20)])), running("side")), "False"), 7);
    check(not_ready(with(old(), json!([terminated("x", 20), running("y")])), "False"), 7);
    check(deleted(with(old(), json!([terminated("x", 20), running("y")]))), 30);
    check(with(old(), json!([running("x")])), 99);
    let zero = json!([{ "name": "x", "state": { "terminated": { "finishedAt": null } } }]);
    check(deleted(not_ready(with(old(), zero), "True")), 30);
}

#[test]
fn a_pod_keeps_what_counts() {
    let statuses = json!([{ "name": "main", "restartCount": 2, "state": { "terminated": { "exitCode": 3 } } }]);
    let built = pod("a", "Failed")
        .annotation(INDEX, "7")
        .annotation(FAILURES, "3")
        .annotation(IGNORED, "-1")
        .annotation("other", "\u{1F980}\n")
        .set(&["status", "containerStatuses"], statuses)
        .set(&["status", "initContainerStatuses"], json!([{ "name": "init", "restartCount": 4 }]))
        .build::<Pod>();
    assert_eq!(built.metadata.annotations, JobAnnotations { index: Some(7), failures: 3, ignored_failures: 0 });
    assert_eq!((built.restarts.containers, built.restarts.sidecars, built.restarts_in_all), (2, 0, 6));
    assert_eq!(built.failure.as_ref().map(|failure| failure.exits.len()), Some(1));
    assert!(built.has_tracking_finalizer());
    let usual = json!([{ "type": "PodScheduled", "status": "True" }, { "type": "Ready", "status": "False" }]);
    let running = pod("a", "Running").set(&["status", "conditions"], usual).build::<Pod>();
    assert!(running.failure.is_none(), "a pod that runs as all do has no failure to keep");
    let bare: Pod = serde_json::from_str(r#"{"metadata":{"name":"a"}}"#).unwrap();
    assert_eq!((bare.index(), bare.finish, bare.has_tracking_finalizer()), (None, None, false));
    assert!(size_of::<Pod>() <= 232, "{} bytes", size_of::<Pod>());
}

/// Upstream: `TestGetIndexFromPod` and `TestGetIndexFailureCount`.
#[test]
fn numbers_in_annotations_are_read_as_upstream_reads_them() {
    let index = |text: &str| pod("a", "Running").annotation(INDEX, text).build::<Pod>().index();
    assert_eq!((index("0"), index("+7"), index("007")), (Some(0), Some(7), Some(7)));
    assert_eq!((index("-1"), index("one"), index(""), index("99999999999")), (None, None, None, Some(i32::MAX)));
    let failures =
        |text: &str| pod("a", "Running").annotation(FAILURES, text).build::<Pod>().metadata.annotations.failures;
    assert_eq!((failures("2"), failures("-2"), failures("x"), failures("2147483648")), (2, 0, 0, 0));
}

#[test]
fn only_what_changes_a_decision_wakes_a_job() {
    let before = pod("a", "Running");
    let is_alike = |after: ObjectBuilder| before.build::<Pod>().is_alike(&after.build::<Pod>());
    assert!(is_alike(before.clone().set(&["metadata", "resourceVersion"], "9").set(&["spec", "priority"], 4)));
    assert!(!is_alike(pod("a", "Succeeded")));
    assert!(!is_alike(before.clone().ready()));
    assert!(!is_alike(before.clone().terminating()));
    assert!(!is_alike(before.clone().label("x", "y")));
    assert!(!is_alike(before.clone().restarts(1)));
    assert!(!is_alike(before.clone().set(&["metadata", "finalizers"], json!([]))));
    assert!(!is_alike(before.clone().set(&["metadata", "finalizers"], json!([FINALIZER, "x"]))));
}

#[test]
fn a_job_reads_with_the_apis_defaults() {
    let bare = testing::object("batch/v1", "Job", "pi").set(&["spec", "template"], json!({})).build::<Job>();
    let spec = &bare.spec;
    assert_eq!((spec.parallelism, spec.completions, spec.backoff_limit, spec.suspend), (1, None, 6, false));
    assert_eq!(spec.completion_mode, CompletionMode::NonIndexed);
    assert_eq!(spec.pod_replacement_policy, PodReplacementPolicy::TerminatingOrFailed);
    assert!(
        !spec.selector.as_ref().unwrap().matches(&shared::api::labels::Labels::default()),
        "no selector selects nothing"
    );
    assert!(!spec.restarts_on_failure());
    let started = job(1, 1).set(&["status", "startTime"], NOW.to_string()).build::<Job>();
    assert_eq!(started.status.start_time, Some(Time::of(NOW)));
}
