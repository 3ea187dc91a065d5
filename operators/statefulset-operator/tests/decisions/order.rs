//! Pods one after the other: rows of upstream's tests of monotonic sets.

use serde_json::json;
use shared::api::intern::Text;
use shared::testing::{NOW, ObjectBuilder, ago};
use statefulset_operator::flags::gates::FeatureGates;
use statefulset_operator::objects::{POD_NAME_LABEL, REVISION_LABEL};
use statefulset_operator::plan::plan;
use statefulset_operator::plan::revisions::Revisions;

use crate::fixtures::{NEW, OLD, SetBuilder, case, claim, named, of_pod, of_set, owned, pod, rejected, set, unready};

fn pods(count: i64) -> Vec<ObjectBuilder> {
    (0..count).map(|ordinal| pod(ordinal, NEW)).collect()
}

fn with(count: i64, more: impl IntoIterator<Item = ObjectBuilder>) -> Vec<ObjectBuilder> {
    pods(count).into_iter().chain(more).collect()
}

/// Upstream: `TestStatefulSetControl/CreatePods` and `ScalesUp`.
#[test]
fn a_pod_comes_once_all_before_it_are_available() {
    case(set(3), []).check("create web-0 of web-new (0 of 3 available, 0 updated)");
    case(set(3), pods(1)).check("create web-1 of web-new (1 of 3 available, 1 updated)");
    case(set(3), pods(2)).check("create web-2 of web-new (2 of 3 available, 2 updated)");
    case(set(3), pods(3)).check("nothing (3 of 3 available, 3 updated)");
    case(set(0), []).check("nothing (0 of 0 available, 0 updated)");
    let waits = "nothing (waiting until web-1 is ready; 1 of 3 available, 2 updated)";
    case(set(3), with(1, [unready(1, NEW)])).check(waits);
    case(set(3), with(1, [unready(1, NEW).phase("Pending")])).check(waits);
    case(set(3), with(1, [unready(1, NEW).phase("Unknown")])).check(waits);
    case(set(3), [pod(1, NEW), pod(2, NEW)]).check("create web-0 of web-new (2 of 3 available, 2 updated)");
    case(set(3), [unready(1, NEW)]).check("create web-0 of web-new (0 of 3 available, 1 updated)");
}

/// Upstream: `TestStatefulSetControlWithStartOrdinal`.
#[test]
fn ordinals_begin_where_the_spec_says() {
    let set = || set(3).with("ordinals", json!({ "start": 2 }));
    case(set(), []).check("create web-2 of web-new (0 of 3 available, 0 updated)");
    case(set(), (2..5).map(|ordinal| pod(ordinal, NEW))).check("nothing (3 of 3 available, 3 updated)");
    case(set(), (0..5).map(|ordinal| pod(ordinal, NEW)))
        .check("delete web-1 [too many] (3 of 3 available, 3 updated, 2 too many)");
}

/// Upstream: `TestStatefulSetControl/ScalesDown` and `TestStatefulSetControlScaleDownDeleteError`.
#[test]
fn the_highest_ordinal_goes_first_once_all_that_stay_are_available() {
    case(set(1), pods(3)).check("delete web-2 [too many] (1 of 1 available, 1 updated, 2 too many)");
    case(set(0), pods(3)).check("delete web-2 [too many] (0 of 0 available, 0 updated, 3 too many)");
    case(set(1), with(2, [pod(2, NEW).terminating()]))
        .check("nothing (waiting until web-2 is gone; 1 of 1 available, 1 updated, 2 too many)");
    case(set(2), [pod(0, NEW), unready(1, NEW), pod(2, NEW)])
        .check("nothing (waiting until web-1 is ready; 1 of 2 available, 2 updated, 1 too many)");
    case(set(1), [pod(0, NEW), pod(12, NEW), pod(9, NEW)])
        .check("delete web-12 [too many] (1 of 1 available, 1 updated, 2 too many)");
}

/// Upstream: `processCondemned` and `TestStatefulSetControllerBlocksScaling`.
#[test]
fn a_pod_too_many_that_is_not_available_goes_only_if_it_is_the_only_one() {
    case(set(1), with(2, [unready(2, NEW)])).check("delete web-2 [too many] (1 of 1 available, 1 updated, 2 too many)");
    case(set(1), [pod(0, NEW), unready(1, NEW), unready(2, NEW)])
        .check("nothing (waiting until web-2 is ready; 1 of 1 available, 1 updated, 2 too many)");
    case(set(1), [pod(0, NEW), unready(1, NEW), pod(2, NEW)])
        .check("delete web-2 [too many] (1 of 1 available, 1 updated, 2 too many)");
}

/// Upstream: `TestStatefulSetControl/RecreatesFailedPod`, `RecreatesSucceededPod` and `ReplacesPods`.
#[test]
fn a_pod_that_has_ended_makes_room_for_another() {
    for phase in ["Failed", "Succeeded"] {
        let ended = unready(0, NEW).phase(phase);
        case(set(3), [ended.clone()]).check(&format!("delete web-0 [{phase}] (0 of 3 available, 1 updated)"));
        case(set(3), [ended.terminating(), pod(1, NEW)])
            .check("nothing (waiting until web-0 is gone; 1 of 3 available, 2 updated)");
        case(set(1), with(1, [unready(1, NEW).phase(phase)]))
            .check("delete web-1 [too many] (1 of 1 available, 1 updated, 1 too many)");
    }
    case(set(5), [pod(1, NEW), pod(3, NEW)]).check("create web-0 of web-new (2 of 5 available, 2 updated)");
}

#[test]
fn a_rejected_pod_stays_while_its_replacement_waits() {
    let goes = "delete web-0 [Failed] (0 of 3 available, 1 updated)";
    let waits = "nothing (waiting to replace web-0, 1 held back for 1s until 2026-01-01T12:00:01Z, since nodes reject \
                 them (OutOfcpu); 0 of 3 available, 1 updated)";
    case(set(3), [rejected(0, NEW)]).rejections(NEW, 3, NOW).check(goes);
    case(set(3), [rejected(0, NEW)]).rejections(NEW, 4, NOW).check(waits);
    case(set(3), [rejected(0, NEW)]).rejections(NEW, 4, ago(1)).check(goes);
    // It would be made from another revision.
    case(set(3), [rejected(0, NEW)]).rejections(OLD, 4, NOW).check(goes);
    case(set(3).partition(1), [rejected(0, NEW)]).rejections(OLD, 4, NOW).check(waits);
    // It has failed otherwise, or is not wanted any more.
    case(set(3), [unready(0, NEW).phase("Failed")]).rejections(NEW, 4, NOW).check(goes);
    case(set(0), [rejected(0, NEW)])
        .rejections(NEW, 4, NOW)
        .check("delete web-0 [too many] (0 of 0 available, 0 updated, 1 too many)");
}

#[test]
fn a_name_of_which_no_label_can_be_made_makes_and_deletes_no_pod() {
    let plan = |set: ObjectBuilder, pods: Vec<ObjectBuilder>, update: &str| {
        let revisions = Revisions { current: Text::new(OLD), update: Text::new(update), collision_count: 0 };
        plan(&case(set, pods).observed(), &revisions, FeatureGates::default(), NOW).to_string()
    };
    let fits = "a".repeat(63);
    let long = "a".repeat(64);
    let because = "its label controller-revision-hash would have 64 characters, more than 63; use a name of at most 52 \
                   characters";
    assert_eq!(plan(set(1), vec![], &fits), format!("create web-0 of {fits} (0 of 1 available, 0 updated)"));
    for set in [set(1), set(1).parallel()] {
        let expected = format!("nothing (cannot create web-0: {because}; 0 of 1 available, 0 updated)");
        assert_eq!(plan(set, vec![], &long), expected);
    }
    let old = || vec![pod(0, OLD), pod(1, OLD)];
    let expected = format!("nothing (cannot create web-1: {because}; 2 of 2 available, 0 updated)");
    assert_eq!(plan(set(2), old(), &long), expected);
    let below_the_partition = plan(set(2).partition(2), old(), &long);
    assert_eq!(below_the_partition, "nothing (2 of 2 available, 0 updated)");
    let name = "b".repeat(62);
    let named = set(1).set(&["metadata", "name"], name.as_str());
    let said = plan(named, vec![], &fits);
    assert!(said.contains("its label statefulset.kubernetes.io/pod-name would have 64 characters"), "{said}");
}

/// Upstream: `TestStatefulSetControllerRespectsTermination`.
#[test]
fn a_pod_on_its_way_out_is_neither_replaced_nor_passed_over() {
    case(set(3), [pod(0, NEW), pod(1, NEW).terminating()])
        .check("nothing (waiting until web-1 is gone; 1 of 3 available, 2 updated)");
    case(set(1), [pod(0, NEW).terminating(), pod(1, NEW)])
        .check("nothing (waiting until web-0 is gone; 0 of 1 available, 1 updated, 1 too many)");
}

/// Upstream: `TestStatefulSetScaleDownRespectsMinReadySeconds` and `TestStatefulSetZeroMinReadySeconds`.
#[test]
fn ready_is_not_available_before_min_ready_seconds_are_over() {
    let set = |replicas| set(replicas).with("minReadySeconds", 30);
    let (long, just) = (|at| pod(at, NEW), |at| unready(at, NEW).ready_since(ago(29)));
    case(set(3), [long(0), just(1)]).check("nothing (waiting until web-1 is available; 1 of 3 available, 2 updated)");
    case(set(1), [just(0), long(1)])
        .check("nothing (waiting until web-0 is available; 0 of 1 available, 1 updated, 1 too many)");
    case(set(1), [long(0), just(1)]).check("delete web-1 [too many] (1 of 1 available, 1 updated, 1 too many)");
    case(set(1), [long(0), just(1), just(2)])
        .check("nothing (waiting until web-2 is available; 1 of 1 available, 1 updated, 2 too many)");
    case(crate::fixtures::set(3), [just(0)]).check("create web-1 of web-new (1 of 3 available, 1 updated)");
}

/// Upstream: `TestStatefulSetControllerDeletionTimestamp`.
#[test]
fn a_set_that_is_being_deleted_is_left_alone() {
    case(set(3).terminating(), [unready(0, NEW).phase("Failed"), pod(7, OLD)]).check("nothing (being deleted)");
}

#[test]
fn a_selector_that_nobody_can_read_is_no_failure() {
    let odd = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
    case(set(3).with("selector", odd), pods(1))
        .check(r#"nothing (invalid selector: "Near" is not a valid label selector operator)"#);
}

/// Upstream: `TestStatefulPodControlUpdatesIdentity` and `TestStatefulPodControlUpdatesPodStorage`.
#[test]
fn a_pod_gets_the_identity_and_the_volumes_of_its_place() {
    let unlabelled = || pod(0, NEW).set(&["metadata", "labels", POD_NAME_LABEL], "other");
    case(set(1), [unlabelled()]).check("update web-0 [identity] (1 of 1 available, 1 updated)");
    case(set(1), [named("web-00", 0, NEW).ready()]).check("update web-0 [identity] (1 of 1 available, 1 updated)");
    case(set(1), [named("web-00", 0, NEW), pod(0, NEW)]).check("nothing (1 of 1 available, 1 updated)");
    case(set(1), [named("web-2147483648", 0, NEW)]).check("create web-0 of web-new (0 of 1 available, 0 updated)");
    let bare = || pod(0, NEW).set(&["spec", "volumes"], json!([{ "name": "data", "emptyDir": {} }]));
    case(set(1).with_claims(), [bare()])
        .claims([claim(0)])
        .check("update web-0 [volumes] (1 of 1 available, 1 updated)");
    case(set(1).with_claims(), [bare()]).check("update web-0 [volumes] with data-web-0 (1 of 1 available, 1 updated)");
    case(set(1), [bare()]).check("nothing (1 of 1 available, 1 updated)");
    let waits = "nothing (waiting until web-0 is ready; 0 of 1 available, 1 updated)";
    case(set(1), [unready(0, NEW).set(&["metadata", "labels", POD_NAME_LABEL], "other")]).check(waits);
    case(set(2), [unlabelled()])
        .check("update web-0 [identity], create web-1 of web-new (1 of 2 available, 1 updated)");
}

/// Upstream: `TestStatefulPodControlCreatesPods`, `TestStatefulPodControlCreatePodPVCDeleting` and
/// `TestStatefulSetControl/RecreatesPVCForPendingPod`.
#[test]
fn a_pod_gets_the_claims_that_are_missing() {
    let set = || set(1).with_claims();
    case(set(), []).check("create web-0 of web-new with data-web-0 (0 of 1 available, 0 updated)");
    case(set(), []).claims([claim(0)]).check("create web-0 of web-new (0 of 1 available, 0 updated)");
    case(set(), [])
        .claims([claim(0).terminating()])
        .check("create web-0 of web-new with data-web-0 once it is gone (0 of 1 available, 0 updated)");
    let pending = || unready(0, NEW).phase("Pending");
    let waits = "waiting until web-0 is ready; 0 of 1 available, 1 updated";
    case(set(), [pending()]).check(&format!("claims of web-0 [pending] with data-web-0 ({waits})"));
    case(set(), [pending()]).claims([claim(0)]).check(&format!("nothing ({waits})"));
    case(set(), [pod(0, NEW)]).check("nothing (1 of 1 available, 1 updated)");
}

/// Upstream: `TestStaleOwnerRefOnScaleup`.
#[test]
fn a_pod_waits_for_the_end_of_the_claim_of_an_earlier_one() {
    let stale = || owned(claim(1), &[of_pod("web-1")]);
    let set = |policy| set(2).with_claims().retention(policy, "Retain");
    case(set("Delete"), pods(1))
        .claims([claim(0), stale()])
        .check("nothing (waiting until data-web-1 of an earlier web-1 is gone; 1 of 2 available, 1 updated)");
    case(set("Retain"), pods(1))
        .claims([claim(0), stale()])
        .check("create web-1 of web-new (1 of 2 available, 1 updated)");
}

#[test]
fn claims_get_the_owners_of_the_retention_policy_with_their_pods() {
    let set = |replicas| set(replicas).with_claims().retention("Delete", "Delete");
    case(set(1), [])
        .claims([claim(0)])
        .check("create web-0 of web-new with data-web-0 of web (0 of 1 available, 0 updated)");
    case(set(1), [pod(0, NEW)])
        .claims([claim(0)])
        .check("update web-0 [owners of its claims] with data-web-0 of web (1 of 1 available, 1 updated)");
    case(set(1), [unready(0, NEW).phase("Pending")]).claims([claim(0)]).check(
        "claims of web-0 [pending] with data-web-0 of web (waiting until web-0 is ready; 0 of 1 available, 1 updated)",
    );
    case(set(1), pods(2)).claims([owned(claim(0), &[of_set()]), owned(claim(1), &[of_set()])]).check(
        "claims of web-1 [too many] with data-web-1 of web-1, delete web-1 [too many] \
         (1 of 1 available, 1 updated, 1 too many)",
    );
    case(crate::fixtures::set(1).with_claims(), [pod(0, NEW)])
        .claims([owned(claim(0), &[of_set()])])
        .check("update web-0 [owners of its claims] with data-web-0 of nobody (1 of 1 available, 1 updated)");
}

#[test]
fn pods_of_a_million_that_are_asked_for_come_one_by_one() {
    case(set(i32::MAX), pods(2)).check("create web-2 of web-new (2 of 2147483647 available, 2 updated)");
    let start = set(i32::MAX).with("ordinals", json!({ "start": i32::MAX }));
    case(start, []).check("create web-2147483647 of web-new (0 of 2147483647 available, 0 updated)");
}

#[test]
fn a_pod_without_a_revision_is_of_an_earlier_one() {
    let odd = pod(0, NEW).set(&["metadata", "labels", REVISION_LABEL], json!(""));
    case(set(1), [odd]).check("delete web-0 [not of web-new] (1 of 1 available, 0 updated)");
}
