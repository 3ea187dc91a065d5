//! The status: rows of upstream's tests of statuses.

use daemonset_operator::status::{next_check, next_status};
use jiff::SignedDuration;
use serde_json::{Value, json};
use shared::testing::{NOW, ago};
use shared::working::expectations::Outstanding;

use crate::fixtures::{Case, NEW, OLD, SetBuilder, case, node, pinned, pod, set, tainted, unready};

fn counted() -> Case {
    let nodes = [node("a"), node("b"), node("c"), node("d"), node("e"), tainted("f", "k", "NoSchedule")];
    let pods = [
        pod("web-1", "a", NEW),
        unready("web-2", "a", OLD).created(ago(-5)),
        unready("web-3", "b", NEW).ready_since(ago(5)),
        pod("web-4", "c", OLD).terminating(),
        pinned("web-5", "d", NEW),
        pod("web-6", "e", NEW).terminating().phase("Failed"),
        pod("web-7", "f", NEW),
        pod("web-8", "gone", NEW),
    ];
    case(set().with("minReadySeconds", 10), nodes, pods)
}

/// Upstream: `TestNumberReadyStatus` and `TestObservedGeneration`.
#[test]
fn nodes_are_counted_by_their_first_pods() {
    let status = next_status(&counted().observed(), NEW, NOW).unwrap();
    let expected = json!({
        "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberMisscheduled": 1, "numberReady": 3,
        "updatedNumberScheduled": 3, "numberAvailable": 2, "numberUnavailable": 3, "observedGeneration": 1,
    });
    assert_eq!(json!(status), expected);
}

/// Upstream: `TestStoreDaemonSetStatus`.
#[test]
fn a_status_is_written_only_if_it_says_anything_new() {
    let next = |case: &Case| next_status(&case.observed(), NEW, NOW).map(|status| json!(status));
    let with = |status: Value| Case { set: counted().set.set(&["status"], status), ..counted() };
    let mut stored = next(&counted()).unwrap();
    assert_eq!(next(&with(stored.clone())), None);
    stored["observedGeneration"] = 7.into();
    assert_eq!(next(&with(stored.clone())), None, "it never goes back");
    stored["numberReady"] = 0.into();
    assert_eq!(next(&with(stored)).unwrap()["observedGeneration"], 7);
}

#[test]
fn a_sync_that_waits_has_not_acted_on_the_generation() {
    let mut observed = counted().observed();
    observed.outstanding = Some(Outstanding { creations: 1, deletions: 0, expires: NOW });
    assert_eq!(next_status(&observed, NEW, NOW).unwrap().observed_generation, 0);
    let mut nothing = case(set(), [], []).observed();
    nothing.outstanding = observed.outstanding;
    assert_eq!(next_status(&nothing, NEW, NOW), None);
}

#[test]
fn the_next_check_is_when_a_pod_becomes_available() {
    let check = |case: &Case| {
        let at = next_check(&case.observed(), NEW, NOW);
        at.map(|at| NOW.duration_until(at.timestamp()))
    };
    assert_eq!(check(&counted()), Some(SignedDuration::from_secs(5)));
    assert_eq!(check(&Case { set: set(), ..counted() }), None);
    let pods = vec![pod("web-1", "a", NEW)];
    assert_eq!(check(&Case { pods, ..counted() }), None);
    let timeless =
        unready("web-1", "a", NEW).set(&["status", "conditions"], json!([{ "type": "Ready", "status": "True" }]));
    assert_eq!(check(&Case { pods: vec![timeless], ..counted() }), Some(SignedDuration::from_secs(10)));
}
