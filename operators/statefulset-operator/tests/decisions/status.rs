//! The status: rows of upstream's tests of statuses.

use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::time::Time;
use shared::testing::{NOW, ObjectBuilder, ago};
use statefulset_operator::apply::Outcome;
use statefulset_operator::objects::StatefulSetStatus;
use statefulset_operator::plan::revisions::Revisions;
use statefulset_operator::status::{calculate_status, next_check, next_status};

use crate::fixtures::{Case, NEW, OLD, SetBuilder, case, named, pod, revisions, set, unready};

fn next_after(case: &Case, outdated: usize) -> Option<StatefulSetStatus> {
    next_status(&case.observed(), &revisions(), &Outcome { outdated, refused: None, error: None }, NOW)
}

fn next(case: &Case) -> StatefulSetStatus {
    next_after(case, 0).unwrap()
}

/// The case with this status, as the apiserver would serve it.
fn with_status(case: &Case, status: &StatefulSetStatus) -> Case {
    let set = case.set.clone().set(&["status"], json!(status));
    Case { set, ..case.clone() }
}

#[test]
fn pods_are_counted() {
    let pods = [
        pod(0, OLD),
        pod(1, OLD).terminating(),
        unready(2, OLD),
        pod(3, NEW),
        unready(4, NEW).ready_since(ago(5)),
        unready(5, NEW).phase("Failed"),
        pod(6, "web-third"),
        named("web-2147483648", 0, NEW),
    ];
    let case = case(set(4).with("minReadySeconds", 10), pods);
    let expected = json!({
        "observedGeneration": 1, "replicas": 7, "readyReplicas": 5, "availableReplicas": 4, "currentReplicas": 2,
        "updatedReplicas": 3, "currentRevision": OLD, "updateRevision": NEW, "collisionCount": 0,
    });
    assert_eq!(json!(next(&case)), expected);
    let deleted = Case { set: case.set.clone().terminating(), ..case };
    assert_eq!((next(&deleted).replicas, next(&deleted).updated_replicas), (8, 4));
}

/// Upstream: `TestStatefulSetAvailability`.
#[test]
fn a_pod_is_available_after_min_ready_seconds() {
    for (seconds, available) in [(7200, 1), (3600, 1), (3599, 0), (1800, 0)] {
        let case = case(set(1).with("minReadySeconds", 3600), [unready(0, NEW).ready_since(ago(seconds))]);
        assert_eq!((next(&case).ready_replicas, next(&case).available_replicas), (1, available), "{seconds}");
    }
}

/// Upstream: `TestStatefulSetControlRollingUpdate`, at its end.
#[test]
fn once_all_pods_are_updated_and_ready_the_update_is_complete() {
    let current = |set: ObjectBuilder, pods: Vec<ObjectBuilder>| {
        let status = next(&case(set, pods));
        (status.current_revision, status.current_replicas)
    };
    let (new, old) = (|count| (Text::new(NEW), count), |count| (Text::new(OLD), count));
    let both = || vec![pod(0, NEW), pod(1, NEW)];
    assert_eq!(current(set(2), both()), new(2));
    assert_eq!(current(set(2).on_delete(), both()), new(2));
    assert_eq!(current(set(2).on_delete(), vec![pod(0, OLD), pod(1, NEW)]), old(1));
    assert_eq!(current(set(2).partition(1), both()), new(2));
    assert_eq!(current(set(2), vec![pod(0, OLD), pod(1, NEW)]), old(1));
    assert_eq!(current(set(2), vec![pod(0, NEW), unready(1, NEW)]), old(0));
    assert_eq!(current(set(2), vec![pod(0, NEW), pod(1, NEW), pod(2, NEW)]), old(0));
    assert_eq!(current(set(0), vec![]), new(0));
}

/// Upstream: `updateStatefulSetAfterInvariantEstablished` counts a pod of the current revision less for each that goes.
#[test]
fn a_pod_that_was_just_deleted_is_none_of_the_current_revision() {
    let case = case(set(3), [pod(0, OLD), pod(1, OLD), pod(2, OLD)]);
    let status = next_after(&case, 1).unwrap();
    assert_eq!((status.replicas, status.current_replicas, status.updated_replicas), (3, 2, 0));
}

/// Upstream: `TestStatefulSetStatusUpdaterUpdatesObservedGeneration` and `inconsistentStatus`.
#[test]
fn a_status_is_written_if_it_says_anything_new() {
    let case = case(set(1), [pod(0, NEW)]);
    let first = next(&case);
    let stored = with_status(&case, &first);
    assert_eq!(next_after(&stored, 0), None);
    let newer = Case { set: stored.set.clone().generation(2), ..stored.clone() };
    assert_eq!(next(&newer).observed_generation, 2);
    let ahead = with_status(&case, &StatefulSetStatus { observed_generation: 5, ..first.clone() });
    assert_eq!(next_after(&ahead, 0), None);
    let one_less = with_status(&case, &StatefulSetStatus { available_replicas: 0, ..first.clone() });
    assert_eq!(next(&one_less), first);

    let taken = Revisions { collision_count: 2, ..revisions() };
    let written = |case: &Case| next_status(&case.observed(), &taken, &Outcome::default(), NOW);
    assert_eq!(written(&stored), None, "a collision alone is no news");
    assert_eq!(written(&one_less).unwrap().collision_count, Some(2));
}

#[test]
fn a_status_says_all_there_is() {
    let none: Value = json!(StatefulSetStatus::default());
    let expected = json!({
        "observedGeneration": 0, "replicas": 0, "readyReplicas": 0, "availableReplicas": 0, "currentReplicas": 0,
        "updatedReplicas": 0, "currentRevision": "", "updateRevision": "", "collisionCount": null,
    });
    assert_eq!(none, expected);
}

/// Upstream: `TestStatefulSetAvailabilityCheck`.
#[test]
fn the_next_look_is_when_the_next_pod_becomes_available() {
    let ready = |at: i64, seconds: i64| unready(at, NEW).ready_since(ago(seconds));
    let set = || set(4).with("minReadySeconds", 5).parallel();
    let look = |case: &Case, now| next_check(&case.observed(), &revisions(), now);
    let waiting = case(set(), [unready(0, NEW), ready(1, 0), ready(2, 2), ready(3, 4)]);
    let status = calculate_status(&waiting.observed(), &revisions(), NOW);
    assert_eq!((status.ready_replicas, status.available_replicas), (3, 0));
    assert_eq!(look(&waiting, NOW), Some(Time::of(ago(-1))));
    assert_eq!(look(&waiting, ago(-1)), Some(Time::of(ago(-3))));
    assert_eq!(look(&waiting, ago(-5)), None);
    assert_eq!(look(&case(set(), [unready(0, NEW)]), NOW), None);
    assert_eq!(look(&case(set().with("minReadySeconds", 0), [ready(0, 0)]), NOW), None);
    let condition = json!([{ "type": "Ready", "status": "True" }]);
    let odd = unready(0, NEW).set(&["status", "conditions"], condition);
    assert_eq!(look(&case(set(), [odd]), NOW), Some(Time::of(ago(-5))));
}
