//! Pods all at once: rows of upstream's tests of sets that burst.

use shared::testing::{NOW, ago};
use statefulset_operator::objects::names::MISSING_MAX;
use statefulset_operator::plan::Step;

use crate::fixtures::{NEW, OLD, SetBuilder, case, claim, of_pod, of_set, owned, pod, rejected, set, unready};

/// Upstream: `TestStatefulSetControl/…/Burst`.
#[test]
fn pods_come_and_go_without_waiting() {
    let set = |replicas| set(replicas).parallel();
    case(set(3), []).check(
        "create web-0 of web-new, create web-1 of web-new, create web-2 of web-new (0 of 3 available, 0 updated)",
    );
    case(set(3), [unready(1, NEW)])
        .check("create web-0 of web-new, create web-2 of web-new (0 of 3 available, 1 updated)");
    case(set(1), [unready(0, NEW), unready(1, NEW), pod(2, NEW), pod(3, NEW).terminating()]).check(
        "delete web-2 [too many], delete web-1 [too many] \
         (waiting until web-0 is available; 0 of 1 available, 1 updated, 3 too many)",
    );
    let ended = |at, phase| unready(at, NEW).phase(phase);
    case(set(3), [ended(0, "Failed"), pod(1, NEW).terminating(), ended(2, "Succeeded")]).check(
        "delete web-0 [Failed], delete web-2 [Succeeded] (waiting until web-2 is gone; 0 of 3 available, 3 updated)",
    );
}

/// Upstream: `TestParallelScale`, where no more than 500 are under way at once.
#[test]
fn one_sync_makes_so_many_pods_and_the_next_one_more() {
    for replicas in [1000, i32::MAX] {
        let plan = case(set(replicas).parallel().with_claims(), [pod(1, NEW)]).plan();
        assert_eq!((plan.replicas.len(), plan.is_ordered), (MISSING_MAX, false));
        let Some(Step::Create(last)) = plan.replicas.last() else { panic!("{plan}") };
        assert_eq!(last.ordinal, 500);
    }
}

#[test]
fn a_stale_claim_holds_up_its_own_pod_alone() {
    let set = set(3).parallel().with_claims().retention("Delete", "Retain");
    case(set, []).claims([owned(claim(1), &[of_pod("web-1")])]).check(
        "create web-0 of web-new with data-web-0, create web-2 of web-new with data-web-2 \
         (waiting until data-web-1 of an earlier web-1 is gone; 0 of 3 available, 0 updated)",
    );
}

#[test]
fn the_claims_of_a_pending_pod_are_seen_to_once() {
    let set = set(1).parallel().with_claims().retention("Delete", "Delete");
    case(set.clone(), [unready(0, NEW).phase("Pending")]).claims([claim(0)]).check(
        "claims of web-0 [pending] with data-web-0 of web \
         (waiting until web-0 is available; 0 of 1 available, 1 updated)",
    );
    case(set, [unready(0, NEW)]).claims([claim(0)]).check(
        "update web-0 [owners of its claims] with data-web-0 of web \
         (waiting until web-0 is available; 0 of 1 available, 1 updated)",
    );
}

#[test]
fn of_rejected_pods_a_few_are_replaced_at_a_time() {
    let set = || set(6).parallel();
    let others = "1 held back until one of those under way runs, since nodes reject them (OutOfcpu)";
    case(set(), (0..6).map(|at| rejected(at, NEW))).rejections(NEW, 4, ago(5)).check(&format!(
        "delete web-0 [Failed], delete web-1 [Failed], delete web-2 [Failed] \
         (waiting to replace web-3, {others}; 0 of 6 available, 6 updated)"
    ));
    let pending = unready(0, NEW).phase("Pending");
    case(set(), [pending].into_iter().chain((2..6).map(|at| rejected(at, NEW)))).rejections(NEW, 4, ago(5)).check(
        &format!(
            "create web-1 of web-new, delete web-2 [Failed] \
             (waiting to replace web-3, {others}; 0 of 6 available, 5 updated)"
        ),
    );
    // Those for which there is no node are rejected by none.
    let unschedulable = (0..3).map(|at| unready(at, NEW).unschedulable());
    case(set(), unschedulable.chain((3..6).map(|at| rejected(at, NEW)))).rejections(NEW, 4, ago(5)).check(
        "delete web-3 [Failed], delete web-4 [Failed], delete web-5 [Failed] \
         (waiting until web-5 is gone; 0 of 6 available, 6 updated)",
    );
    // Those of an earlier revision go for the update's sake.
    case(set(), (0..6).map(|at| rejected(at, OLD))).rejections(OLD, 9, NOW).check(
        "delete web-0 [Failed], delete web-1 [Failed], delete web-2 [Failed], delete web-3 [Failed], \
         delete web-4 [Failed] and 1 more (waiting until web-5 is gone; 0 of 6 available, 0 updated)",
    );
}

/// As in order, one pod of an earlier revision goes at a time; the strategy needs the pods of higher ordinals.
#[test]
fn a_rolling_update_takes_one_pod_at_a_time() {
    let set = |replicas| set(replicas).parallel();
    case(set(3), (0..3).map(|at| pod(at, OLD))).check("delete web-2 [not of web-new] (3 of 3 available, 0 updated)");
    case(set(3), [pod(0, OLD), pod(1, OLD)]).check("create web-2 of web-new (2 of 3 available, 0 updated)");
    case(set(3), [pod(0, OLD), pod(1, OLD), unready(2, NEW)])
        .check("nothing (waiting until web-2 is available; 2 of 3 available, 1 updated)");
    case(set(3), [unready(0, OLD), unready(1, OLD), pod(2, NEW)])
        .check("delete web-1 [not of web-new] (1 of 3 available, 1 updated)");
    case(set(2), [pod(0, OLD), unready(1, OLD).phase("Failed")])
        .check("delete web-1 [Failed] (waiting until web-1 is gone; 1 of 2 available, 0 updated)");
    case(set(1), [pod(0, OLD), pod(1, OLD)])
        .claims([owned(claim(0), &[of_set()])])
        .check("delete web-1 [too many], delete web-0 [not of web-new] (1 of 1 available, 0 updated, 1 too many)");
}
