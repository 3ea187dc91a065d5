//! Which pods go for the sake of an update: rows of upstream's tests of update strategies.

use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, ago};
use statefulset_operator::flags::gates::FeatureGates;
use statefulset_operator::objects::StatefulSet;
use statefulset_operator::plan::rolling::{Unavailability, max_unavailable};
use statefulset_operator::plan::unavailability;

use crate::fixtures::{Case, GATE, NEW, OLD, SetBuilder, case, pod, set, unready};

fn of(revisions: &[&str]) -> Vec<ObjectBuilder> {
    (0..).zip(revisions).map(|(ordinal, revision)| pod(ordinal, revision)).collect()
}

/// Upstream: `TestStatefulSetControlRollingUpdate`.
#[test]
fn pods_are_replaced_from_the_highest_ordinal_down() {
    case(set(3), of(&[OLD, OLD, OLD])).check("delete web-2 [not of web-new] (3 of 3 available, 0 updated)");
    case(set(3), of(&[OLD, OLD])).check("create web-2 of web-new (2 of 3 available, 0 updated)");
    case(set(3), [pod(0, OLD), pod(1, OLD), unready(2, NEW)])
        .check("nothing (waiting until web-2 is ready; 2 of 3 available, 1 updated)");
    case(set(3), of(&[OLD, OLD, NEW])).check("delete web-1 [not of web-new] (3 of 3 available, 1 updated)");
    case(set(3), of(&[OLD, NEW, NEW])).check("delete web-0 [not of web-new] (3 of 3 available, 2 updated)");
    case(set(3), of(&[NEW, NEW, NEW])).check("nothing (3 of 3 available, 3 updated)");
    let third = "web-third";
    case(set(3), of(&[OLD, third, NEW])).check("delete web-1 [not of web-new] (3 of 3 available, 1 updated)");
}

/// A pod of a template that never gets ready holds up the rest, as upstream (k/k#67250).
#[test]
fn a_broken_pod_of_an_earlier_revision_is_waited_for() {
    case(set(3), [pod(0, OLD), pod(1, OLD), unready(2, "web-broken")])
        .check("nothing (waiting until web-2 is ready; 2 of 3 available, 0 updated)");
}

/// Upstream: `TestStatefulSetControlRollingUpdateWithPartition`.
#[test]
fn pods_below_the_partition_keep_the_current_revision() {
    let set = |replicas, partition| set(replicas).partition(partition);
    case(set(3, 2), of(&[OLD, OLD, OLD])).check("delete web-2 [not of web-new] (3 of 3 available, 0 updated)");
    case(set(3, 2), of(&[OLD, OLD, NEW])).check("nothing (3 of 3 available, 1 updated)");
    case(set(3, 2), [pod(1, OLD), pod(2, NEW)]).check("create web-0 of web-old (2 of 3 available, 1 updated)");
    case(set(5, 2), of(&[OLD, OLD, NEW])).check("create web-3 of web-new (3 of 5 available, 1 updated)");
    case(set(3, 9), of(&[OLD, OLD, OLD])).check("nothing (3 of 3 available, 0 updated)");
    let started = set(3, 2).with("ordinals", json!({ "start": 4 }));
    case(started.clone(), (4..7).map(|at| pod(at, OLD)))
        .check("delete web-6 [not of web-new] (3 of 3 available, 0 updated)");
    case(started.clone(), [pod(4, OLD), pod(5, OLD), pod(6, NEW)]).check("nothing (3 of 3 available, 1 updated)");
    case(started, [pod(4, OLD), pod(6, NEW)]).check("create web-5 of web-old (2 of 3 available, 1 updated)");
}

/// Upstream: `newVersionedStatefulSetPod`. The apiserver's defaults always say something about a rolling update.
#[test]
fn without_a_partition_as_many_pods_are_of_the_current_revision_as_the_status_says() {
    let bare = set(3).with("updateStrategy", json!({ "type": "RollingUpdate" })).set(&["status", "currentReplicas"], 2);
    case(bare.clone(), of(&[OLD])).check("create web-1 of web-old (1 of 3 available, 0 updated)");
    case(bare, of(&[OLD, OLD])).check("create web-2 of web-new (2 of 3 available, 0 updated)");
}

/// Upstream: `TestStatefulSetControlOnDeleteUpdate`.
#[test]
fn on_delete_replaces_no_pod_and_makes_new_ones_of_the_new_template() {
    case(set(3).on_delete(), of(&[OLD, OLD, OLD])).check("nothing (3 of 3 available, 0 updated)");
    case(set(3).on_delete(), [pod(0, OLD), pod(2, OLD)]).check("create web-1 of web-new (2 of 3 available, 0 updated)");
    case(set(1).on_delete(), of(&[OLD, OLD]))
        .check("delete web-1 [too many] (1 of 1 available, 0 updated, 1 too many)");
}

/// Upstream: `TestStatefulSetRollingUpdateRespectsMinReadySeconds`,
/// `TestStatefulSetOnDeleteStrategyIgnoresMinReadySeconds` and
/// `TestStatefulSetPartitionRollingUpdateWithMinReadySeconds`.
#[test]
fn an_update_waits_until_an_updated_pod_is_available() {
    let just = |at| unready(at, NEW).ready_since(ago(29));
    let set = || set(3).with("minReadySeconds", 30);
    let pods = || [pod(0, OLD), pod(1, OLD), just(2)];
    let waits = "nothing (waiting until web-2 is available; 2 of 3 available, 1 updated)";
    case(set(), pods()).check(waits);
    case(set().parallel(), pods()).check(waits);
    case(set().partition(1), pods()).check(waits);
    case(set().partition(2).parallel(), pods()).check(waits);
    case(set().on_delete().parallel(), pods()).check("nothing (2 of 3 available, 1 updated)");
}

fn several(replicas: i32, limit: impl Into<Value>, pods: impl IntoIterator<Item = ObjectBuilder>) -> Case {
    let limit: Value = limit.into();
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 3, "maxUnavailable": limit } });
    case(set(replicas).parallel().with("updateStrategy", rolling), pods).gates(GATE)
}

/// Upstream: `TestStatefulSetControlRollingUpdateWithMaxUnavailable`.
#[test]
fn several_pods_go_at_once_where_the_gate_is_on() {
    several(6, 2, of(&[OLD; 6]))
        .check("delete web-5 [not of web-new], delete web-4 [not of web-new] (6 of 6 available, 0 updated)");
    several(6, 2, of(&[OLD; 4]))
        .check("create web-4 of web-new, create web-5 of web-new (4 of 6 available, 0 updated)");
    several(6, 2, of(&[OLD; 4]).into_iter().chain([pod(4, NEW), unready(5, NEW)]))
        .check("delete web-3 [not of web-new] (5 of 6 available, 2 updated)");
    several(6, 2, of(&[OLD, OLD, OLD, NEW, NEW, NEW])).check("nothing (6 of 6 available, 3 updated)");
    several(6, "50%", of(&[OLD; 6])).check(
        "delete web-5 [not of web-new], delete web-4 [not of web-new], delete web-3 [not of web-new] \
         (6 of 6 available, 0 updated)",
    );
    several(6, Value::Null, of(&[OLD; 6])).check("delete web-5 [not of web-new] (6 of 6 available, 0 updated)");
    several(6, 2, of(&[OLD; 6]))
        .gates(FeatureGates::default())
        .check("delete web-5 [not of web-new] (6 of 6 available, 0 updated)");
}

/// Rows of upstream's `TestStatefulSetControlRollingUpdateWithMaxUnavailableInOrderedModeVerifyInvariant`, in parallel,
/// where unavailable pods do not end the sync before.
#[test]
fn unavailable_pods_count_wherever_they_are() {
    for (unavailable, gone) in [
        (&[][..], 2),
        (&[5], 1),
        (&[3], 1),
        (&[4], 1),
        (&[5, 4], 0),
        (&[5, 3], 0),
        (&[4, 3], 0),
        (&[5, 4, 3], 0),
        (&[2], 1),
        (&[1], 1),
    ] {
        let pods = (0..6).map(|at| if unavailable.contains(&at) { pod(at, OLD).terminating() } else { pod(at, OLD) });
        let plan = several(6, 2, pods).plan();
        assert_eq!(plan.outdated.len(), gone, "{unavailable:?}: {plan}");
    }
}

#[test]
fn in_order_one_pod_that_is_not_available_ends_the_sync_wherever_it_is() {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0, "maxUnavailable": 3 } });
    let set = set(3).with("updateStrategy", rolling);
    case(set.clone(), of(&[OLD; 3])).gates(GATE).check(
        "delete web-2 [not of web-new], delete web-1 [not of web-new], delete web-0 [not of web-new] \
         (3 of 3 available, 0 updated)",
    );
    case(set, [pod(0, OLD), unready(1, NEW), pod(2, OLD)])
        .gates(GATE)
        .check("nothing (waiting until web-1 is ready; 2 of 3 available, 1 updated)");
}

/// Upstream: `TestGetStatefulSetMaxUnavailable`.
#[test]
fn at_least_one_pod_may_be_unavailable() {
    for (limit, replicas, expected) in [
        (json!(null), 10, 1),
        (json!(3), 10, 3),
        (json!(3), 0, 3),
        (json!(0), 0, 1),
        (json!("10%"), 25, 2),
        (json!("100%"), 5, 5),
        (json!("50%"), 5, 2),
        (json!("10%"), 5, 1),
        (json!("1%"), 0, 1),
        (json!("0%"), 0, 1),
        (json!("many"), 5, 1),
    ] {
        let path = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
        let set = set(replicas).set(&path, limit.clone()).build::<StatefulSet>();
        assert_eq!(max_unavailable(&set.spec), expected, "{limit} of {replicas}");
    }
    let bare = set(5).with("updateStrategy", json!({})).build::<StatefulSet>();
    assert_eq!(max_unavailable(&bare.spec), 1);
}

/// Upstream: `TestStatefulSetMetrics`.
#[test]
fn pods_that_are_missing_are_unavailable_too() {
    let case = several(6, 2, [pod(0, OLD), unready(1, OLD), pod(2, OLD).terminating(), pod(9, OLD)]);
    let counted = unavailability(&case.observed(), shared::testing::NOW);
    assert_eq!(counted, Unavailability { unavailable: 5, max: 2 });
}
