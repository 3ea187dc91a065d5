//! Pods of an earlier revision that were never ready: which are replaced, and when (k/k#67250, k/k#137409).

use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, ago};
use statefulset_operator::flags::gates::FeatureGates;
use statefulset_operator::objects::pod::Pod;
use statefulset_operator::objects::{REPLACE_STUCK_PODS, StatefulSet};

use crate::fixtures::{Case, GATE, NEW, OLD, SetBuilder, case, claim, never_ready, pod, set, unready};

/// Its pod of this ordinal, which has never been ready.
fn stuck(ordinal: i64, revision: &str) -> ObjectBuilder {
    never_ready(unready(ordinal, revision))
}

/// The plan's text if web-`ordinal` is replaced, with the numbers in it.
fn evicts(ordinal: i64, numbers: &str) -> String {
    format!(
        "evict web-{ordinal} [never ready, not of web-new] \
         (waiting until web-{ordinal}, which was never ready, is replaced; {numbers})"
    )
}

/// A set in parallel with this `maxUnavailable`, where the gate for it is on.
fn several(limit: i32, pods: impl IntoIterator<Item = ObjectBuilder>) -> Case {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0, "maxUnavailable": limit } });
    case(set(3).parallel().curable().with("updateStrategy", rolling), pods).gates(GATE)
}

#[test]
fn in_order_a_broken_pod_of_an_earlier_revision_is_replaced_where_the_set_asks_for_it() {
    let pods = || [pod(0, OLD), pod(1, OLD), stuck(2, "web-broken")];
    case(set(3).curable(), pods()).check(&evicts(2, "2 of 3 available, 0 updated"));
    case(set(3), pods()).check("nothing (waiting until web-2 is ready; 2 of 3 available, 0 updated)");
    for other in ["false", "True", "1", ""] {
        let set = set(3).annotation(REPLACE_STUCK_PODS, other);
        case(set, pods()).check("nothing (waiting until web-2 is ready; 2 of 3 available, 0 updated)");
    }
    let middle = [pod(0, OLD), stuck(1, "web-broken"), pod(2, NEW)];
    case(set(3).curable(), middle).check(&evicts(1, "2 of 3 available, 1 updated"));
}

#[test]
fn in_order_a_faulty_first_revision_has_one_pod_and_that_is_replaced() {
    case(set(3).curable(), [stuck(0, OLD)]).check(&evicts(0, "0 of 3 available, 0 updated"));
    case(set(3).curable(), [stuck(0, NEW)])
        .check("nothing (waiting until web-0 is ready; 0 of 3 available, 1 updated)");
    case(set(3).curable(), []).check("create web-0 of web-new (0 of 3 available, 0 updated)");
    case(set(3).curable(), [pod(0, NEW)]).check("create web-1 of web-new (1 of 3 available, 1 updated)");
}

#[test]
fn a_pod_that_may_have_been_ready_is_never_replaced() {
    let waits = "nothing (waiting until web-1 is ready; 1 of 2 available, 0 updated)";
    let lost_it = json!([{ "type": "Ready", "status": "False", "lastTransitionTime": ago(99).to_string() }]);
    let unknown = json!([{ "type": "Ready", "status": "Unknown", "lastTransitionTime": ago(100).to_string() }]);
    for second in [
        stuck(1, OLD).set(&["status", "conditions"], lost_it),
        stuck(1, OLD).set(&["status", "conditions"], unknown),
        unready(1, OLD),
        unready(1, OLD).phase("Pending"),
    ] {
        case(set(2).curable(), [pod(0, OLD), second]).check(waits);
    }
    // The one that is waited for comes first, and nothing is known of it.
    case(set(2).curable(), [unready(0, OLD), stuck(1, OLD)])
        .check("nothing (waiting until web-0 is ready; 0 of 2 available, 0 updated)");
}

/// The rule itself, and the states of a pod that it tells apart.
#[test]
fn a_condition_that_is_as_old_as_the_start_has_never_been_true() {
    let is_certain = |pod: ObjectBuilder| pod.build::<Pod>().was_never_ready;
    let condition = |status: &str, seconds: i64| {
        let (status, since) = (status.to_owned(), ago(seconds).to_string());
        json!([
            { "type": "PodScheduled", "status": "True", "lastTransitionTime": ago(101).to_string() },
            { "type": "Ready", "status": status, "lastTransitionTime": since },
        ])
    };
    let with = |conditions: Value| stuck(0, OLD).set(&["status", "conditions"], conditions);
    assert!(is_certain(stuck(0, OLD)));
    assert!(is_certain(stuck(0, OLD).phase("Pending")), "its image cannot be pulled");
    assert!(is_certain(stuck(0, OLD).restarts(7)), "it crashes before any probe succeeds");
    assert!(is_certain(with(condition("False", 100))));
    assert!(!is_certain(with(condition("False", 99))), "it was ready, or node-lifecycle said that it is not any more");
    assert!(!is_certain(with(condition("True", 100))));
    assert!(!is_certain(with(condition("Unknown", 100))));
    assert!(!is_certain(with(json!([{ "type": "Ready", "status": "False" }]))));
    assert!(!is_certain(with(json!([]))), "its kubelet has always written the condition");
    assert!(!is_certain(stuck(0, OLD).set(&["status", "startTime"], Value::Null)));
    let unscheduled = || unready(0, OLD).node("").phase("Pending");
    let scheduled = json!([{ "type": "PodScheduled", "status": "False" }]);
    assert!(is_certain(unscheduled()), "no node, no containers");
    assert!(is_certain(unscheduled().set(&["status", "conditions"], scheduled)));
    assert!(!is_certain(unscheduled().node("node")), "its kubelet may have been unable to write");
    assert!(!is_certain(unscheduled().phase("Running")));
    assert!(!is_certain(pod(0, OLD)));
}

#[test]
fn a_change_of_what_is_certain_wakes_the_set() {
    let (certain, in_doubt) = (stuck(0, OLD).build::<Pod>(), unready(0, OLD).build::<Pod>());
    assert!(!certain.is_alike(&in_doubt) && certain.is_alike(&stuck(0, OLD).annotation("a", "b").build::<Pod>()));
}

#[test]
fn pods_below_the_partition_stay() {
    let set = |partition| set(2).curable().partition(partition);
    let pods = || [pod(0, OLD), stuck(1, OLD)];
    case(set(1), pods()).check(&evicts(1, "1 of 2 available, 0 updated"));
    case(set(2), pods()).check("nothing (waiting until web-1 is ready; 1 of 2 available, 0 updated)");
    let started = set(1).with("ordinals", json!({ "start": 4 }));
    case(started.clone(), [pod(4, OLD), stuck(5, OLD)]).check(&evicts(5, "1 of 2 available, 0 updated"));
    case(started, [stuck(4, OLD), pod(5, OLD)])
        .check("nothing (waiting until web-4 is ready; 1 of 2 available, 0 updated)");
}

/// Another pod would be of the current revision again, or nobody has asked for a new one.
#[test]
fn a_pod_stays_where_the_next_one_would_be_no_better() {
    let waits = "nothing (waiting until web-0 is ready; 0 of 2 available, 0 updated)";
    case(set(2).curable().on_delete(), [stuck(0, OLD)]).check(waits);
    let bare = set(2).curable().with("updateStrategy", json!({ "type": "RollingUpdate" }));
    case(bare.clone().set(&["status", "currentReplicas"], 1), [stuck(0, OLD)]).check(waits);
    case(bare, [stuck(0, OLD)]).check(&evicts(0, "0 of 2 available, 0 updated"));
}

#[test]
fn one_that_goes_or_has_ended_is_replaced_as_ever() {
    case(set(2).curable(), [stuck(0, OLD).terminating()])
        .check("nothing (waiting until web-0 is gone; 0 of 2 available, 0 updated)");
    case(set(2).curable(), [stuck(0, OLD).phase("Failed")])
        .check("delete web-0 [Failed] (0 of 2 available, 0 updated)");
    case(set(2).curable().terminating(), [stuck(0, OLD)]).check("nothing (being deleted)");
}

#[test]
fn in_order_one_pod_is_replaced_at_a_time() {
    let gone = [pod(0, OLD), stuck(1, OLD), pod(2, OLD).terminating()];
    case(set(3).curable(), gone).check("nothing (waiting until web-2 is gone; 1 of 3 available, 0 updated)");
    case(set(3).curable(), [pod(0, OLD), stuck(1, OLD), stuck(2, NEW)])
        .check("nothing (waiting until web-2 is available; 1 of 3 available, 1 updated)");
    case(set(3).curable(), [pod(0, OLD), stuck(1, OLD), unready(2, OLD)])
        .check("nothing (waiting until web-2 is available; 1 of 3 available, 0 updated)");
    case(set(3).curable(), [pod(0, OLD), stuck(1, OLD), stuck(2, OLD)])
        .check(&evicts(1, "1 of 3 available, 0 updated"));
    case(set(3).curable(), [pod(0, OLD), stuck(1, OLD), unready(2, OLD).phase("Failed")])
        .check(&evicts(1, "1 of 3 available, 0 updated"));
}

/// A claim that is being deleted stays for as long as this pod uses it.
#[test]
fn a_pod_that_is_replaced_gets_no_claims_before() {
    let set = || set(1).with_claims().retention("Delete", "Delete");
    let pending = || [stuck(0, OLD).phase("Pending")];
    let claims = || [claim(0).terminating()];
    case(set().curable(), pending()).claims(claims()).check(&evicts(0, "0 of 1 available, 0 updated"));
    case(set(), pending()).claims(claims()).check(
        "claims of web-0 [pending] with data-web-0 once it is gone, data-web-0 of web \
         (waiting until web-0 is ready; 0 of 1 available, 0 updated)",
    );
}

#[test]
fn in_parallel_a_faulty_first_revision_is_replaced_from_the_highest_ordinal_down() {
    let faulty = || (0..3).map(|at| stuck(at, OLD));
    several(1, faulty()).check(&evicts(2, "0 of 3 available, 0 updated"));
    several(2, faulty()).check(&evicts(2, "0 of 3 available, 0 updated"));
    several(1, [stuck(0, OLD), stuck(1, OLD), pod(2, NEW)]).check(&evicts(1, "1 of 3 available, 1 updated"));
    several(1, [stuck(0, OLD), pod(1, NEW), pod(2, NEW)]).check(&evicts(0, "2 of 3 available, 2 updated"));
    let asking = several(1, faulty());
    let refusing = Case { set: asking.set.clone().annotation(REPLACE_STUCK_PODS, "false"), ..asking };
    refusing.check("nothing (0 of 3 available, 0 updated)");
    // Without the gate upstream gets over it by itself.
    several(1, faulty())
        .gates(FeatureGates::default())
        .check("delete web-2 [not of web-new] (0 of 3 available, 0 updated)");
}

#[test]
fn in_parallel_one_pod_is_replaced_at_a_time() {
    several(3, [stuck(0, OLD), stuck(1, OLD), pod(2, OLD).terminating()])
        .check("nothing (waiting until web-2 is gone; 0 of 3 available, 0 updated)");
    several(2, [stuck(0, OLD), stuck(1, OLD), stuck(2, NEW)])
        .check("nothing (waiting until web-2 is available; 0 of 3 available, 1 updated)");
    several(2, [stuck(0, OLD), stuck(1, OLD)]).check("create web-2 of web-new (0 of 3 available, 0 updated)");
    several(2, [stuck(0, OLD), unready(1, OLD).phase("Failed"), stuck(2, OLD)])
        .check("delete web-1 [Failed] (waiting until web-1 is gone; 0 of 3 available, 0 updated)");
}

#[test]
fn pods_that_were_ready_and_are_not_count_against_max_unavailable() {
    let pods = || [stuck(0, OLD), stuck(1, OLD), unready(2, OLD)];
    several(1, pods()).check("nothing (waiting until web-2 is available; 0 of 3 available, 0 updated)");
    several(2, pods()).check(&evicts(1, "0 of 3 available, 0 updated"));
    // The update takes as many as may be unavailable, whatever state they are in.
    several(3, [pod(0, OLD), stuck(1, OLD), stuck(2, OLD)])
        .check("delete web-2 [not of web-new] (1 of 3 available, 0 updated)");
}

#[test]
fn annotations_that_say_nothing_ask_for_nothing() {
    for annotations in [json!(null), json!({}), json!({ REPLACE_STUCK_PODS: "yes" })] {
        let set = set(1).set(&["metadata", "annotations"], annotations);
        assert!(!set.build::<StatefulSet>().replaces_stuck_pods());
    }
    assert!(set(1).annotation("a", "b").curable().build::<StatefulSet>().replaces_stuck_pods());
}
