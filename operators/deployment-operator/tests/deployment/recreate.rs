//! The strategy Recreate.

use deployment_operator::observe::Observed;
use deployment_operator::plan::live_read::{next_live_read, plan_live_read};
use serde_json::Value;

use crate::builders::*;

const WAITS: &str = "recreate (waiting for the pods of web-v1); status: rollout";
const GOES_ON: &str = "recreate; scale web-v2 0→3 (new: no old pod runs); status: rollout";

/// A ReplicaSet without pods as an older server keeps it: it does not say how many of its pods terminate.
fn open(version: &str) -> ReplicaSet {
    set(version, 0).status("terminatingReplicas", Value::Null)
}

/// Upstream: `TestScaleDownOldReplicaSets`.
#[test]
fn all_old_ones_shrink_to_nothing_first() {
    check(
        &deployment("v3", 3).recreate().with(&[set("v1", 3), set("v2", 1), set("v3", 0)]),
        "recreate; scale web-v1 3→0 (old: all pods are recreated); scale web-v2 1→0 (old: all pods are recreated); \
         status: rollout",
    );
}

/// Upstream: `TestOldPodsRunning`; pods that have ended are neither counted nor listed.
#[test]
fn it_waits_until_no_old_set_may_run_pods() {
    let recreate = deployment("v2", 3).recreate();
    let check_old = |old: ReplicaSet, expected: &str| check(&recreate.with(&[old, set("v2", 0)]), expected);
    check(&recreate.with(&[set("v2", 0)]), GOES_ON);
    check_old(set("v1", 0), GOES_ON);
    check_old(set("v1", 0).status("replicas", 1), WAITS);
    check_old(set("v1", 0).status("terminatingReplicas", 1), WAITS);
    // Its controller has not seen yet that it is to have none.
    check_old(set("v1", 0).status("observedGeneration", 0), WAITS);
    check_old(open("v1"), WAITS);
    // The pods of the new one keep nothing back.
    check(&recreate.with(&[set("v1", 0), set("v2", 0).status("terminatingReplicas", 1)]), GOES_ON);
    check(&recreate.with(&[set("v1", 0), open("v2")]), GOES_ON);
}

#[test]
fn where_a_status_leaves_it_open_a_list_tells() {
    let recreate = deployment("v2", 3).recreate();
    let check_pods = |sets: &[ReplicaSet], pods: &[&str], expected: &str| {
        let pods: Vec<_> = pods.iter().map(|version| (*version, None)).collect();
        check(&recreate.with_pods(sets, &pods), expected);
    };
    let sets = [open("v1"), open("v2")];
    check_pods(&sets, &[], GOES_ON);
    check_pods(&sets, &["v1"], WAITS);
    check_pods(&sets, &["v2", "v1"], WAITS);
    // Pods of the new one keep nothing back, nor do those of one that is gone.
    check_pods(&sets, &["v2", "v0"], GOES_ON);
    // A list may come before the pods that a set is yet to make.
    check_pods(&[open("v1").status("observedGeneration", 0), set("v2", 0)], &[], WAITS);
    check_pods(&[open("v0"), set("v1", 0).status("terminatingReplicas", 1), set("v2", 0)], &[], WAITS);
}

#[test]
fn pods_are_asked_for_only_where_the_plan_depends_on_them() {
    let asks = |observed: &Observed| plan_live_read(observed, now()).is_some();
    let recreate = deployment("v2", 3).recreate();
    let sets = [open("v1"), set("v2", 0)];
    assert!(asks(&recreate.with(&sets)));
    assert!(asks(&recreate.with(&[open("v1")])), "the new one is not there yet");
    assert!(!asks(&recreate.with_pods(&sets, &[])), "they are known");
    assert!(!asks(&recreate.with(&[set("v1", 0), set("v2", 0)])), "the status tells");
    assert!(!asks(&recreate.with(&[open("v1").status("replicas", 1), set("v2", 0)])));
    assert!(!asks(&recreate.with(&[open("v0"), set("v1", 0).status("terminatingReplicas", 1), set("v2", 0)])));
    assert!(
        !asks(&recreate.with(&[set("v1", 3).status("terminatingReplicas", Value::Null), set("v2", 0)])),
        "it is scaled down first"
    );
    assert!(!asks(&recreate.with(&[open("v1"), set("v2", 3)])), "the new one has its size");
    assert!(!asks(&recreate.clone().paused().with(&sets)));
    assert!(!asks(&recreate.being_deleted().with(&sets)));
    assert!(!asks(&deployment("v2", 3).rolling(1, 0).with(&sets)));
}

#[test]
fn the_longer_the_last_pod_has_been_ending_the_later_the_next_look() {
    let recreate = deployment("v2", 3).recreate();
    let sets = [open("v0"), open("v1"), set("v2", 0)];
    let check_look = |pods: &[(&str, Option<i64>)], expected: Option<u64>| {
        let look = next_live_read(&recreate.with_pods(&sets, pods), now());
        assert_eq!(look.map(|look| look.as_secs()), expected, "{pods:?}");
    };
    assert_eq!(next_live_read(&recreate.with(&sets), now()), None);
    check_look(&[], None);
    check_look(&[("v2", None)], None);
    check_look(&[("v1", None)], Some(1));
    check_look(&[("v1", Some(NOW))], Some(1));
    check_look(&[("v1", Some(NOW - 20))], Some(5));
    check_look(&[("v0", Some(NOW - 20)), ("v1", Some(NOW - 8))], Some(2));
    check_look(&[("v1", Some(NOW - 3600))], Some(10));
    // The server's clock may be ahead of ours.
    check_look(&[("v1", Some(NOW + 60))], Some(1));
}

#[test]
fn the_new_one_is_created_at_full_size_when_no_old_pod_runs() {
    let recreate = deployment("v2", 3).recreate();
    check(&recreate.with(&[set("v1", 0).status("terminatingReplicas", 1)]), WAITS);
    let name = format!("web-{}", recreate.build().spec.template.hash(None));
    check(&recreate.with(&[set("v1", 0)]), &format!("recreate; create {name} of 3"));
}

#[test]
fn a_size_below_is_raised_and_one_above_is_lowered() {
    let recreate = deployment("v1", 3).recreate();
    check(&recreate.with(&[set("v1", 2)]), "recreate; scale web-v1 2→3 (new: no old pod runs); status: rollout");
    check(&recreate.with(&[set("v1", 4)]), "recreate; scale web-v1 4→3 (new: no old pod runs); status: rollout");
    check(&recreate.with(&[set("v1", 3)]), "complete; status: rollout");
}
