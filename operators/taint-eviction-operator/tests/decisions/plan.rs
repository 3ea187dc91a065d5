//! When a pod goes: upstream's cases.

use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder};
use shared::working::decisions::stage;
use taint_eviction_operator::memory::Pending;
use taint_eviction_operator::observe::Observed;
use taint_eviction_operator::plan::{plan, plan_node};

use crate::fixtures::{after, marked, node, observed, observed_node, pending, pod, pod_of, toleration};

const NOT_TOLERATED: &str = "evict (does not tolerate testTaint1=test1)";
const START: &str = "evict after 1m40s (tolerates testTaint1=test1 until 2026-01-01T12:01:40Z)";
const FOR_EVER: &str = "keep (tolerates the taint of its node forever)";
const NOT_TAINTED: &str = "keep (its node has no NoExecute taints)";

/// A pod on a node with these taints.
#[track_caller]
fn check(pod: &ObjectBuilder, taints: &[u32], expected: &str) {
    check_pending(pod, taints, None, expected);
}

/// The same, with a pending deletion.
#[track_caller]
fn check_pending(pod: &ObjectBuilder, taints: &[u32], pending: Option<Pending>, expected: &str) {
    let observed = Observed { pending, ..observed(pod, Some(&node(taints))) };
    assert_eq!(plan(&observed, NOW).to_string(), expected);
}

/// Upstream: `TestCreatePod`.
#[test]
fn a_pod_that_is_new_to_its_node_goes_unless_it_tolerates_all_taints() {
    // "not scheduled - ignore"
    let unbound = observed(&pod(&[]).node(""), None);
    assert_eq!(plan(&unbound, NOW).to_string(), "keep (is not bound to a node)");
    // "scheduled on untainted Node"
    check(&pod(&[]), &[], NOT_TAINTED);
    // "schedule on tainted Node"
    check(&pod(&[]), &[1], NOT_TOLERATED);
    // "schedule on tainted Node with finite toleration"
    check(&pod(&[toleration(1, Some(100))]), &[1], START);
    // "schedule on tainted Node with infinite toleration"
    check(&pod(&[toleration(1, None)]), &[1], FOR_EVER);
    // "schedule on tainted Node with infinite invalid toleration"
    check(&pod(&[toleration(2, None)]), &[1], NOT_TOLERATED);
    // A pod that has ended is no exception.
    check(&pod(&[]).phase("Succeeded"), &[1], NOT_TOLERATED);
}

/// Upstream: `TestDeletePod`.
#[test]
fn the_pending_deletion_of_a_pod_that_is_gone_is_cancelled() {
    let gone = Observed { pod: None, node: None, ..observed(&pod(&[]), None) };
    let check = |pending, expected: &str| {
        assert_eq!(plan(&Observed { pending, ..gone.clone() }, NOW).to_string(), expected);
    };
    check(None, "keep (the pod is gone)");
    check(Some(pending("pod1", 100, false)), "cancel, keep (the pod is gone)");
    // It has happened.
    check(Some(pending("pod1", -1, true)), "keep (the pod is gone)");
}

/// Upstream: `TestUpdatePod`. "scheduling onto tainted Node", with and without toleration, is as of a new pod.
#[test]
fn a_pending_deletion_keeps_its_time_until_the_pod_has_to_go_at_once() {
    // "removing toleration"
    check_pending(&pod(&[]), &[1], Some(pending("pod1", 100, false)), &format!("cancel, {NOT_TOLERATED}"));
    // "lengthening toleration shouldn't work"
    let longer = pod(&[toleration(1, Some(100))]);
    let waits = "wait 1s (tolerates testTaint1=test1 until 2026-01-01T12:00:01Z)";
    check_pending(&longer, &[1], Some(pending("pod1", 1, false)), waits);
    let due = Observed { pending: Some(pending("pod1", 1, false)), ..observed(&longer, Some(&node(&[1]))) };
    let goes = "evict (tolerated testTaint1=test1 until 2026-01-01T12:00:01Z)";
    assert_eq!(plan(&due, after(1)).to_string(), goes);
    // And neither does shortening it.
    let waits = "wait 1m40s (tolerates testTaint1=test1 until 2026-01-01T12:01:40Z)";
    for shorter in [Some(1), Some(0)] {
        check_pending(&pod(&[toleration(1, shorter)]), &[1], Some(pending("pod1", 100, false)), waits);
    }
    check_pending(
        &pod(&[toleration(1, None)]),
        &[1],
        Some(pending("pod1", 100, false)),
        &format!("cancel, {FOR_EVER}"),
    );
}

/// Upstream: `TestUpdateNode`.
#[test]
fn all_taints_of_the_node_count_and_of_the_tolerations_the_shortest() {
    // "Added taint, expect node patched and deleted"
    check(&pod(&[]), &[1], NOT_TOLERATED);
    // "Added tolerated taint"
    let tolerant = pod(&[toleration(1, Some(100))]);
    check(&tolerant, &[1], START);
    // "Only one added taint tolerated"
    check(&tolerant, &[1, 2], "evict (does not tolerate testTaint2=test2)");
    // "Taint removed"
    check_pending(&tolerant, &[], Some(pending("pod1", 100, false)), &format!("cancel, {NOT_TAINTED}"));
    // "Pod with multiple tolerations are evicted when first one runs out"
    let both = pod(&[toleration(1, Some(1)), toleration(2, Some(100))]).ready();
    check(&both, &[1, 2], "evict after 1s (tolerates testTaint1=test1 until 2026-01-01T12:00:01Z)");
}

/// Upstream: `TestUpdateNodeWithMultipleTaints`.
#[test]
fn a_taint_that_is_tolerated_for_a_while_counts_while_it_is_there() {
    let of_key =
        |key: &str, seconds: Option<i64>| json!({ "key": key, "operator": "Exists", "tolerationSeconds": seconds });
    let pod = pod(&[of_key("testTaint1", None), of_key("testTaint2", Some(60))]);
    check(&pod, &[], NOT_TAINTED);
    check(&pod, &[1], FOR_EVER);
    check(&pod, &[1, 2], "evict after 1m0s (tolerates testTaint2=test2 until 2026-01-01T12:01:00Z)");
    check_pending(&pod, &[1], Some(pending("pod1", 60, false)), &format!("cancel, {FOR_EVER}"));
}

/// Upstream: `TestGetMinTolerationTime`, each toleration of a taint of its own.
#[test]
fn a_toleration_without_a_time_is_longer_than_all_others() {
    check(&pod(&[]), &[1], NOT_TOLERATED);
    check(&pod(&[toleration(1, None)]), &[1], FOR_EVER);
    let both = |first, second| pod(&[toleration(1, first), toleration(2, second)]);
    check(&both(None, None), &[1, 2], "keep (tolerates the 2 taints of its node forever)");
    let first = "evict after 1s (tolerates testTaint1=test1 until 2026-01-01T12:00:01Z)";
    let second = "evict after 1s (tolerates testTaint2=test2 until 2026-01-01T12:00:01Z)";
    check(&both(Some(1), Some(2)), &[1, 2], first);
    check(&both(Some(1), None), &[1, 2], first);
    check(&both(None, Some(1)), &[1, 2], second);
    // No time at all, and a time that is none.
    for none in [0, -5] {
        let now = "evict (tolerated testTaint2=test2 until 2026-01-01T12:00:00Z)";
        check(&both(Some(100), Some(none)), &[1, 2], now);
    }
    // A time that no clock counts.
    let planned = plan(&observed(&pod(&[toleration(1, Some(i64::MAX))]), Some(&node(&[1]))), NOW);
    assert!(planned.to_string().starts_with("evict after "), "{planned}");
}

/// Upstream: `GetMatchingTolerations`.
#[test]
fn of_several_tolerations_of_a_taint_the_first_counts() {
    check(&pod(&[toleration(1, Some(100)), toleration(1, None)]), &[1], START);
    check(&pod(&[toleration(1, None), toleration(1, Some(100))]), &[1], FOR_EVER);
}

/// Upstream: `TestDeleteNode`.
#[test]
fn without_its_node_a_pod_keeps_its_pending_deletion_and_gets_no_new_one() {
    let gone = |pending| plan(&Observed { pending, ..observed(&pod(&[]), None) }, NOW).to_string();
    assert_eq!(gone(None), "keep (its node is gone)");
    assert_eq!(gone(Some(pending("pod1", 100, false))), "wait 1m40s (its node is gone)");
    assert_eq!(gone(Some(pending("pod1", 0, false))), "evict (its node is gone)");
}

/// Upstream: `TestCreateNode` and `TestUpdateNodeWithMultiplePods`; `TestEventualConsistency` is the same for pods that
/// are seen later, one by one.
#[test]
fn the_pods_of_a_node_whose_plans_change_are_synced() {
    let check = |pods: &[ObjectBuilder], taints: &[u32], expected: &str| {
        assert_eq!(plan_node(&observed_node(pods, &node(taints)), NOW).to_string(), expected);
    };
    // "Creating Node matching already assigned Pod"
    let one = [pod(&[])];
    check(&one, &[], "nothing (pods: 1, no NoExecute taints)");
    // "Creating tainted Node matching already assigned Pod"
    check(&one, &[1], "sync default/pod1 (pods: 1, taints: testTaint1=test1)");
    // "Creating tainted Node matching already assigned tolerating Pod"
    let tolerant = [pod(&[toleration(1, None)])];
    check(&tolerant, &[1], "nothing (pods: 1, taints: testTaint1=test1)");
    // "Pods with different toleration times are evicted appropriately"
    let three =
        [pod_of("pod1", &[]), pod_of("pod2", &[toleration(1, Some(1))]), pod_of("pod3", &[toleration(1, None)])];
    check(&three, &[1], "sync default/pod1, default/pod2 (pods: 3, taints: testTaint1=test1)");
    // "Evict all pods not matching all taints instantly"
    let all = "sync default/pod1, default/pod2, default/pod3 (pods: 3, taints: testTaint1=test1, \
               testTaint2=test2)";
    check(&three, &[1, 2], all);
}

#[test]
fn pods_that_wait_are_synced_again_when_the_taints_go() {
    let mut waits = observed_node(&[pod(&[toleration(1, Some(100))])], &node(&[1]));
    waits.pods[0].pending = Some(pending("pod1", 50, false));
    let planned = plan_node(&waits, NOW);
    assert!(planned.sync.is_empty(), "{planned}");
    let mut untainted = observed_node(&[pod(&[toleration(1, Some(100))]), pod_of("other", &[])], &node(&[]));
    untainted.pods[0].pending = Some(pending("pod1", 50, false));
    let planned = plan_node(&untainted, NOW);
    assert_eq!(planned.to_string(), "sync default/pod1 (pods: 2, no NoExecute taints)");
}

#[test]
fn a_deletion_that_was_announced_is_tried_again_and_cancelled_where_the_pod_may_stay() {
    let announced = || Some(pending("pod1", -7, true));
    check_pending(&pod(&[]), &[1], announced(), "evict again (does not tolerate testTaint1=test1)");
    let tolerated = "evict again (tolerated testTaint1=test1 until 2026-01-01T11:59:53Z)";
    check_pending(&pod(&[toleration(1, Some(100))]), &[1], announced(), tolerated);
    check_pending(&pod(&[]), &[], announced(), &format!("cancel, {NOT_TAINTED}"));
}

#[test]
fn a_pod_that_is_being_deleted_is_marked_and_that_is_all() {
    let deleted = pod(&[]).terminating();
    check(&deleted, &[1], "mark (does not tolerate testTaint1=test1)");
    let marked = marked(deleted, "True", "DeletionByTaintManager");
    check(&marked, &[1], "keep (marked, and being deleted)");
    check_pending(&marked, &[1], Some(pending("pod1", 50, false)), "keep (marked, and being deleted)");
}

#[test]
fn the_pending_deletion_of_a_former_pod_is_not_about_the_one_that_has_its_name() {
    let former = || Some(pending("another", 5, false));
    let tolerant = pod(&[toleration(1, Some(100))]);
    check_pending(&tolerant, &[1], former(), &format!("cancel, {START}"));
    check_pending(&tolerant, &[], former(), &format!("cancel, {NOT_TAINTED}"));
    check_pending(&pod(&[]), &[1], former(), &format!("cancel, {NOT_TOLERATED}"));
    // The former pod is gone, as was announced.
    check_pending(&pod(&[]), &[1], Some(pending("another", -5, true)), NOT_TOLERATED);
    check_pending(&tolerant, &[], Some(pending("another", -5, true)), NOT_TAINTED);
}

/// Programs read these.
#[test]
fn reasons_name_taints_and_times() {
    let reason = |pod: &ObjectBuilder, taints: &[u32]| -> Value {
        stage(&plan(&observed(pod, Some(&node(taints))), NOW)).reason
    };
    let tolerates = json!({ "taint": "testTaint1=test1", "until": "2026-01-01T12:01:40Z" });
    assert_eq!(reason(&pod(&[toleration(1, Some(100))]), &[1]), json!({ "tolerates": tolerates }));
    assert_eq!(reason(&pod(&[]), &[2]), json!({ "notTolerated": { "taint": "testTaint2=test2" } }));
    assert_eq!(reason(&pod(&[toleration(1, None)]), &[1]), json!({ "toleratesForEver": { "taints": 1 } }));
    assert_eq!(reason(&pod(&[]), &[]), json!("notTainted"));
    let of_node = stage(&plan_node(&observed_node(&[pod(&[])], &node(&[1])), NOW)).reason;
    assert_eq!(of_node, json!({ "tainted": { "taints": ["testTaint1=test1"], "pods": 1 } }));
}
