//! Which pods are missing and which are too many: rows of upstream's `daemon_controller_test.go`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use daemonset_operator::memory::{Failures, Pause};
use daemonset_operator::objects::DaemonSet;
use daemonset_operator::plan::reasons::{Reason, Why};
use daemonset_operator::plan::{BURST, Deletion, plan};
use jiff::SignedDuration;
use serde_json::json;
use shared::api::intern::Text;
use shared::testing::{NOW, ObjectBuilder, ago, uid};
use shared::working::expectations::Outstanding;

use crate::fixtures::{Case, NEW, OLD, SetBuilder, case, node, pinned, pod, set, tainted, unready};

/// Upstream: `TestSimpleDaemonSetLaunchesPods`, `TestNoNodesDoesNothing` and `TestOneNodeDaemonLaunchesPod`.
#[test]
fn each_node_gets_one_pod() {
    case(set(), [], []).check("nothing");
    case(set(), [node("a")], []).check("create on a [missing]");
    case(set(), [node("a"), node("b")], [pod("web-1", "a", NEW)]).check("create on b [missing]");
    case(set(), [node("a")], [pod("web-1", "a", NEW)]).check("nothing");
    case(set(), [node("a")], [pinned("web-1", "a", NEW)]).check("nothing");
}

/// Upstream: `TestDealsWithExistingPods`.
#[test]
fn of_several_pods_of_a_node_the_oldest_bound_one_stays() {
    let pods = [
        pod("web-1", "a", NEW).created(ago(10)),
        pod("web-2", "a", NEW).created(ago(20)),
        pinned("web-3", "a", NEW).created(ago(30)),
        pod("web-4", "a", NEW).created(ago(20)),
    ];
    let expected = "delete web-4 [too many], web-1 [too many], web-3 [too many]";
    case(set(), [node("a")], pods).check(expected);
}

/// Upstream: `TestSelectorDaemonDeletesUnselectedPods`, `TestNodeAffinityDaemonLaunchesPods` and their like.
#[test]
fn a_node_that_it_is_not_for_has_none() {
    let selective = set().with_pod("nodeSelector", json!({ "disk": "fast" }));
    let nodes = || [node("a"), node("b").label("disk", "fast")];
    case(selective, nodes(), [pod("web-1", "a", NEW)])
        .check("create on b [missing]; delete web-1 [outside of the node selector]");
    let taint = |effect| [tainted("a", "k", effect)];
    case(set(), taint("NoSchedule"), []).check("nothing");
    case(set(), taint("NoSchedule"), [pod("web-1", "a", NEW)]).check("nothing");
    case(set(), taint("NoExecute"), []).check("nothing");
    case(set(), taint("NoExecute"), [pod("web-1", "a", NEW)]).check("delete web-1 [does not tolerate k:NoExecute]");
    case(set(), taint("NoExecute"), [pod("web-1", "a", NEW).terminating()]).check("nothing");
    case(set(), taint("PreferNoSchedule"), []).check("create on a [missing]");
}

/// Upstream: `TestDaemonSetRespectsTermination` and `TestGetNodesToDaemonPods`: a pod that is being deleted keeps its
/// place, unless it has ended.
#[test]
fn a_pod_that_is_being_deleted_is_waited_for() {
    let leaving = || pod("web-1", "a", NEW).terminating();
    case(set(), [node("a")], [leaving()]).check("nothing");
    case(set(), [node("a")], [leaving().phase("Failed")]).check("create on a [missing]");
    case(set().surge(1), [node("a")], [leaving()]).check("create on a [missing]");
}

/// Upstream: `TestDeleteUnscheduledPodForNotExistingNode`.
#[test]
fn a_pod_that_can_never_be_bound_goes() {
    let pods = [pod("web-1", "a", NEW), pod("web-2", "gone", NEW), pinned("web-3", "gone", NEW)];
    case(set(), [node("a")], pods).check("delete web-3 [no such node]");
    let nowhere = unready("web-2", "", NEW);
    case(set(), [node("a")], [pod("web-1", "a", NEW), nowhere]).check("nothing");
}

fn failed(name: &str) -> ObjectBuilder {
    unready(name, "a", NEW).phase("Failed")
}

fn failing(case: &Case, before: Option<Pause>) -> (String, Option<Duration>, Option<u64>) {
    let mut observed = case.observed();
    observed.failures = before.map(|pause| (Text::new("a"), pause)).into_iter().collect::<BTreeMap<_, _>>();
    let plan = plan(&observed, NEW, NOW);
    let wait = |deletion: &Deletion| if let Why::Failed(pause) = &deletion.why { Some(pause.wait) } else { None };
    let wait = plan.delete.iter().find_map(wait);
    let names: Vec<&str> = plan.delete.iter().map(|deletion| deletion.key.name()).collect();
    (names.join(","), wait, plan.look_again.map(|delay| delay.as_secs()))
}

/// Upstream: `TestDaemonKillFailedPods` and `TestDaemonKillFailedPodsBackoff`.
#[test]
fn a_failed_pod_goes_at_once_and_the_next_one_later() {
    let one = case(set(), [node("a")], [failed("web-1")]);
    let second = Duration::from_secs(1);
    assert_eq!(failing(&one, None), ("web-1".to_owned(), Some(second), None));
    let pause = |ago_seconds, wait| Some(Pause { since: ago(ago_seconds), wait: Duration::from_secs(wait) });
    assert_eq!(failing(&one, pause(1, 4)), (String::new(), None, Some(3)));
    assert_eq!(failing(&one, pause(4, 4)), ("web-1".to_owned(), Some(Duration::from_secs(8)), None));
    let longest = Duration::from_mins(15);
    assert_eq!(failing(&one, pause(900, 900)), ("web-1".to_owned(), Some(longest), None));
    let ahead = pause(-8 * 3600, 900);
    assert_eq!(failing(&one, ahead), ("web-1".to_owned(), Some(longest), None), "the clock was set back since");
    let two = case(set(), [node("a")], [failed("web-1"), failed("web-2")]);
    assert_eq!(failing(&two, None), ("web-1".to_owned(), Some(second), Some(1)), "each waits for the one before");
    case(set(), [node("a")], [unready("web-1", "a", NEW).phase("Succeeded")]).check("delete web-1 [succeeded]");
    case(set(), [tainted("a", "k", "NoSchedule")], [failed("web-1")]).check("delete web-1 [failed]");
}

#[test]
fn failures_are_forgotten_with_the_template_the_set_or_time() {
    let (failures, a) = (Failures::default(), Text::new("a"));
    let built = |builder: ObjectBuilder| -> Arc<DaemonSet> { builder.build() };
    let of = |builder: ObjectBuilder, at| failures.of(&built(builder), at).len();
    let web = || set().set(&["status", "observedGeneration"], 1);
    failures.remember(&built(web()), &a, Pause::next(None, NOW));
    assert_eq!(of(web(), NOW), 1);
    assert_eq!(of(web().set(&["status", "observedGeneration"], 2), NOW), 0);
    assert_eq!(of(web().uid_of("another"), NOW), 0);
    let later = |minutes| NOW + SignedDuration::from_mins(minutes);
    assert_eq!((of(web(), later(29)), of(web(), later(30))), (1, 0));
    assert_eq!(of(web(), later(-8 * 60)), 0, "the clock was set back since");
    failures.forget(&built(web()).metadata.key);
    assert_eq!(of(web(), NOW), 0);
}

/// Upstream: `TestSurgePreservesReadyOldPods`, `TestSurgeDeletesUnreadyOldPods` and those about `MinReady`.
#[test]
fn with_a_surge_a_ready_old_pod_stays_until_the_new_one_is_available() {
    let both = |old, new| case(set().surge(1).with("minReadySeconds", 50), [node("a")], [old, new]);
    let new = |seconds| unready("web-2", "a", NEW).ready_since(ago(seconds));
    both(pod("web-1", "a", OLD), unready("web-2", "a", NEW)).check("nothing");
    both(pod("web-1", "a", OLD), new(49)).check("nothing");
    both(pod("web-1", "a", OLD), new(50)).check("delete web-1 [replaced]");
    both(unready("web-1", "a", OLD), unready("web-2", "a", NEW)).check("delete web-1 [outdated, not ready]");
    let many = ["web-1", "web-2", "web-3", "web-4"];
    let pods = many.iter().enumerate().map(|(at, name)| pod(name, "a", if at < 2 { OLD } else { NEW }));
    case(set().surge("10%"), [node("a")], pods).check("delete web-2 [too many], web-4 [too many], web-1 [replaced]");
}

/// Upstream: `TestSurgeCreatesNewPodWhenAtMaxSurgeAndOldPodDeleted`.
#[test]
fn with_a_surge_a_node_whose_pod_is_on_its_way_out_gets_one_whatever_the_limit() {
    let pods = [pod("web-1", "a", OLD), unready("web-2", "a", NEW), pod("web-3", "b", OLD).terminating()];
    case(set().surge(1), [node("a"), node("b")], pods).check("create on b [missing]");
}

/// Upstream: `TestDontDoAnythingIfBeingDeleted`, `TestPodIsNotDeletedByDaemonsetWithEmptyLabelSelector` and
/// `TestExpectationsOnRecreate`.
#[test]
fn nothing_is_done_where_nobody_can_say_what_is_meant_or_seen() {
    let missing = |set| case(set, [node("a")], []);
    missing(set().terminating()).check("nothing");
    missing(set().with("selector", json!({}))).check("nothing");
    let odd = json!({ "matchExpressions": [{ "key": "a", "operator": "Odd" }] });
    missing(set().with("selector", odd)).check("nothing");
    let mut observed = missing(set()).observed();
    observed.outstanding = Some(Outstanding { creations: 1, deletions: 0, expires: NOW });
    let plan = plan(&observed, NEW, NOW);
    assert_eq!(plan.to_string(), "nothing (waiting to see 1 creation)");
    let odd = case(set().unavailable("odd"), [node("a")], [pod("web-1", "a", OLD)]).plan();
    assert!(matches!(odd.reason, Reason::InvalidStrategy { .. }) && odd.is_empty(), "{odd}");
}

/// Upstream: `TestSimpleDaemonSetUpdatesStatusAfterLaunchingPods` has such a burst.
#[test]
fn one_sync_makes_a_burst_at_most() {
    let nodes = (0..300).map(|at| node(&format!("n{at:03}")));
    let plan = case(set(), nodes, []).plan();
    assert_eq!((plan.create.len(), plan.reason.to_string()), (BURST, "0 of 300 nodes available, 0 updated".to_owned()));
    let pods = (0..300).map(|at| pod(&format!("web-{at:03}"), "a", NEW));
    let plan = case(set(), [node("a")], pods).plan();
    assert_eq!((plan.delete.len(), plan.delete[0].uid), (BURST, uid("web-001")));
}
