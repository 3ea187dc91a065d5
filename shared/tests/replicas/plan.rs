//! The plan of a sync. Rows name upstream's tests where they are theirs
//! (`pkg/controller/replicaset/replica_set_test.go`).

use std::sync::Arc;

use serde_json::json;
use shared::api::object::Key;
use shared::api::pod::ranking::Rule;
use shared::controllers::rejections::Rejections;
use shared::controllers::replicas::memory::Ended;
use shared::controllers::replicas::observe::Observed;
use shared::controllers::replicas::plan::{plan, plan_live_read};
use shared::controllers::replicas::pod::Pod;
use shared::testing::{NOW, ObjectBuilder, ago, uid};
use shared::working::expectations::Expectations;

use super::fixtures::{foreign, observed, orphan, pod, ready_pods, rejections, relabelled, web};
use crate::Owner;

#[track_caller]
pub(crate) fn check(web: &ObjectBuilder, pods: &[ObjectBuilder], expected: &str) {
    assert_eq!(plan(&observed(web, pods), NOW).to_string(), expected);
}

/// With these pods on the nodes of its siblings.
#[track_caller]
fn check_related(web: &ObjectBuilder, pods: &[ObjectBuilder], related: &[ObjectBuilder], expected: &str) {
    let related = related.iter().map(ObjectBuilder::build).collect();
    let observed = Observed { related, ..observed(web, pods) };
    assert_eq!(plan(&observed, NOW).to_string(), expected);
}

/// `TestSyncReplicaSetDoesNothing`.
#[test]
fn as_many_as_wanted_are_left_alone() {
    check(&web(2), &ready_pods(2), "nothing (2 of 2 active)");
    check(&web(0), &[], "nothing (0 of 0 active)");
}

#[test]
fn missing_pods_are_created() {
    check(&web(5), &ready_pods(2), "create 3 (2 of 5 active)");
    check(&web(1).set(&["spec", "replicas"], json!(null)), &[], "create 1 (0 of 1 active)");
}

/// `TestControllerBurstReplicas`.
#[test]
fn at_most_500_are_created_or_deleted_at_once() {
    check(&web(2000), &[], "create 500 (0 of 2000 active)");
    let down_to = |replicas: i32| plan(&observed(&web(replicas), &ready_pods(700)), NOW).delete;
    assert_eq!(down_to(1).len(), 500);
    assert_eq!(down_to(0).len(), 500);
    assert!(down_to(0).iter().all(|deletion| deletion.rule == Rule::AllGo), "those that stay for now go next");
}

#[test]
fn a_plan_spells_out_five_pods_and_counts_the_rest() {
    let pods: Vec<ObjectBuilder> = "abcdefg".chars().map(|name| orphan(&name.to_string())).collect();
    check(&web(7), &pods, "adopt a, b, c, d, e and 2 more (selected, and nobody's)");
}

#[test]
fn pods_that_ended_or_are_going_do_not_count() {
    let pods = [pod("done").phase("Succeeded"), pod("failed").phase("Failed"), pod("going").terminating(), pod("runs")];
    check(&web(2), &pods, "create 1 (1 of 2 active)");
    check(&web(1), &pods, "nothing (1 of 1 active)");
}

#[test]
fn pods_that_ended_or_are_going_are_neither_adopted_nor_released() {
    let pods = [orphan("done").phase("Succeeded"), orphan("going").terminating(), relabelled("failed").phase("Failed")];
    check(&web(0), &pods, "nothing (0 of 0 active)");
}

/// `TestPatchPodFails`: orphans count before their adoption has succeeded.
#[test]
fn orphans_are_adopted_before_any_pod_is_made() {
    check(&web(2), &[orphan("a"), orphan("b")], "adopt a, b (selected, and nobody's)");
    check(&web(3), &[orphan("a"), pod("b")], "adopt a (selected, and nobody's); create 1 (2 of 3 active)");
    check(&web(1), &[orphan("a").ready(), pod("b")], "adopt a (selected, and nobody's); delete b (not ready)");
}

/// `TestDoNotPatchPodWithOtherControlRef`.
#[test]
fn what_belongs_to_another_is_not_touched_and_does_not_count() {
    check(&web(2), &[foreign("a")], "create 2 (0 of 2 active)");
}

#[test]
fn a_relabelled_pod_is_released_and_replaced() {
    check(&web(2), &[relabelled("a"), pod("b")], "release a (selected no more); create 1 (1 of 2 active)");
    check(&web(1), &[orphan("c").label("app", "db"), pod("b")], "nothing (1 of 1 active)");
}

#[test]
fn an_orphan_of_another_namespace_is_not_ours() {
    check(&web(0), &[orphan("a").namespace("elsewhere")], "nothing (0 of 0 active)");
}

/// `TestDoNotAdoptOrCreateIfBeingDeleted`.
#[test]
fn one_that_is_being_deleted_does_nothing() {
    let web = web(3).terminating();
    check(&web, &[orphan("a"), relabelled("b"), pod("c")], "nothing (being deleted)");
}

/// `TestSyncReplicaSetDormancy` and `TestRSSyncExpectations`.
#[test]
fn nothing_is_created_or_deleted_before_the_last_writes_were_seen() {
    let expectations = Expectations::new();
    let key = Key::new("default", "web");
    expectations.expect(&key, 2, [uid("web-0")]);
    let waiting = Observed {
        outstanding: expectations.outstanding(&key, NOW),
        ..observed(&web(3), &[orphan("a"), relabelled("b")])
    };
    assert_eq!(plan(&waiting, NOW).to_string(), "adopt a (selected, and nobody's); release b (selected no more)");
    let waiting = Observed { pods: Vec::new(), ..waiting };
    assert_eq!(plan(&waiting, NOW).to_string(), "nothing (waiting to see 2 creations and 1 deletion)");
}

#[test]
fn replacements_of_rejected_pods_are_held_back() {
    let check = |replicas: i32, pods: &[ObjectBuilder], rejections: Rejections, expected: &str| {
        let observed = Observed { rejections, ..observed(&web(replicas), pods) };
        assert_eq!(plan(&observed, NOW).to_string(), expected);
    };
    check(3, &ready_pods(1), rejections(3, NOW), "create 2 (1 of 3 active)");
    let waits = "nothing (1 of 3 active; 2 held back for 1s until 2026-01-01T12:00:01Z, since nodes reject them \
                 (OutOfcpu))";
    check(3, &ready_pods(1), rejections(4, NOW), waits);
    let few = "create 2 (1 of 9 active; 6 held back until one of those under way runs, since nodes reject them \
               (OutOfcpu))";
    check(9, &[pod("a").phase("Pending")], rejections(4, ago(5)), few);
    let unschedulable = ["a", "b", "c"].map(|name| pod(name).unschedulable());
    let not_under_way = "create 3 (3 of 6 active)";
    check(6, &unschedulable, rejections(4, ago(5)), not_under_way);
    check(1, &ready_pods(1), rejections(4, NOW), "nothing (1 of 1 active)");
}

#[test]
fn pods_that_have_ended_are_read_where_others_would_take_their_places() {
    let read = |observed: Observed<Owner>| {
        let ended = vec![Ended { key: Key::new("default", "web-x"), uid: uid("web-x"), seen: NOW }];
        plan_live_read(&Observed { ended, ..observed }, NOW).map(|read| read.to_string())
    };
    let expected = Some("read pods that have ended (web-x did not run)".to_owned());
    assert_eq!(read(observed(&web(2), &ready_pods(1))), expected);
    let delayed = Observed { rejections: rejections(4, NOW), ..observed(&web(2), &[]) };
    assert_eq!(read(delayed), expected);
    assert_eq!(read(observed(&web(1), &ready_pods(1))), None);
    assert_eq!(read(observed(&web(2).terminating(), &[])), None);
    assert_eq!(plan_live_read(&observed(&web(2), &[]), NOW), None);
}

/// `TestGetPodsToDelete`.
#[test]
fn pods_in_earlier_phases_go_first() {
    let unscheduled = pod("unscheduled").node("").phase("Pending");
    let pending = pod("pending").phase("Pending");
    let not_ready = pod("not-ready");
    let (ready_1, ready_2) = (pod("ready-1").node("node-1").ready(), pod("ready-2").node("node-2").ready());
    let all = [ready_1.clone(), ready_2.clone(), not_ready.clone(), pending.clone(), unscheduled.clone()];

    check(&web(1), &[ready_1.clone(), not_ready.clone()], "delete not-ready (not ready)");
    check(&web(1), &[pending.clone(), unscheduled], "delete unscheduled (not scheduled)");
    check(&web(1), &[pending, not_ready], "delete pending (earlier phase)");
    check(&web(2), &all, "delete unscheduled (not scheduled), pending (earlier phase), not-ready (not ready)");
    let everything = plan(&observed(&web(0), &all), NOW);
    assert_eq!(everything.delete.len(), 5);
    check(&web(0), &[ready_1], "delete ready-1 (none is wanted)");
}

/// `TestGetPodsToDelete`: a ready pod on a node with others of its Deployment goes before one that is alone.
#[test]
fn pods_that_share_a_node_with_related_ones_go_first() {
    let (alone, doubled) = (pod("a").node("node-1").ready(), pod("b").node("node-2").ready());
    let sibling = orphan("c").node("node-2");
    let pods = [alone.clone(), doubled.clone()];
    let related = [alone.clone(), doubled.clone(), sibling.clone()];
    check_related(&web(1), &pods, &related, "delete b (doubled up on its node)");
    // One that has ended takes no place.
    let ended = [alone, doubled, sibling.phase("Succeeded"), orphan("d").node("node-1")];
    check_related(&web(1), &pods, &ended, "delete a (doubled up on its node)");
}

#[test]
fn each_deletion_says_which_rule_set_it_apart() {
    let hours = |hours: i64| ago(hours * 3600);
    let old = |name: &str| pod(name).created(hours(2)).ready_since(hours(2));
    check(&web(1), &[old("a"), old("b").deletion_cost("-5")], "delete b (lower deletion cost)");
    check(&web(1), &[old("a"), old("b").restarts(3)], "delete b (more restarts)");
    check(&web(1), &[old("a"), pod("b").ready()], "delete b (ready for less time)");
    check(&web(1), &[old("a"), pod("b").ready_since(hours(2))], "delete b (newer)");
    let equals = plan(&observed(&web(1), &[old("a"), old("b")]), NOW);
    let lower = if uid("a") < uid("b") { "a" } else { "b" };
    assert_eq!(equals.to_string(), format!("delete {lower} (like those that stay, lower uid)"));
}

#[test]
fn each_deletion_carries_the_uid_it_was_decided_on() {
    let plan = plan(&observed(&web(0), &[pod("a")]), NOW);
    let [deletion] = plan.delete.as_slice() else { panic!("{plan}") };
    assert_eq!((deletion.key.to_string().as_str(), deletion.uid), ("default/a", uid("a")));
}

#[test]
fn the_pods_that_count_are_those_owned_and_those_to_be_adopted() {
    let plan = plan(&observed(&web(2), &[pod("b"), orphan("a"), relabelled("c"), foreign("d")]), NOW);
    let names = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.metadata.name().to_owned()).collect::<Vec<_>>().join(",");
    assert_eq!(names(&plan.claim.owned), "b");
    assert_eq!(names(&plan.claim.adopt), "a");
    assert_eq!(names(&plan.claim.release), "c");
    assert!(!plan.is_empty());
}
