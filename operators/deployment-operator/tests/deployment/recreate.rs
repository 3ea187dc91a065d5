//! The strategy Recreate.

use crate::builders::*;

const WAITS: &str = "recreate; status: rollout";

/// Upstream: `TestScaleDownOldReplicaSets`.
#[test]
fn all_old_ones_shrink_to_nothing_first() {
    check(
        &deployment("v3", 3).recreate().with(&[set("v1", 3), set("v2", 1), set("v3", 0)]),
        "recreate; scale web-v1 3→0 (old: all pods are recreated); scale web-v2 1→0 (old: all pods are recreated); \
         status: rollout",
    );
}

/// Upstream: `TestOldPodsRunning`; finished pods are not watched.
#[test]
fn it_waits_for_the_last_old_pod() {
    let recreate = deployment("v2", 3).recreate();
    let goes_on = "recreate; scale web-v2 0→3 (new: no old pod runs); status: rollout";
    let sets = [set("v1", 0), set("v2", 0)];
    check(&recreate.with(&sets[1..]), goes_on);
    check(&recreate.with(&sets), goes_on);
    check(&recreate.with(&[set("v1", 0).status("replicas", 1), set("v2", 0)]), WAITS);
    let check_pods = |pods: &[&str], expected: &str| check(&recreate.with_pods(&sets, pods), expected);
    check_pods(&["v1"], WAITS);
    check_pods(&["v2", "v1"], WAITS);
    // Pods of the new one keep nothing back.
    check_pods(&["v2"], goes_on);
}

#[test]
fn the_new_one_is_created_at_full_size_when_no_old_pod_runs() {
    let recreate = deployment("v2", 3).recreate();
    check(&recreate.with_pods(&[set("v1", 0)], &["v1"]), WAITS);
    let name = format!("web-{}", recreate.build().spec.template.hash(None));
    check(&recreate.with(&[set("v1", 0)]), &format!("recreate; create {name} of 3"));
}

#[test]
fn a_size_below_is_raised_and_one_above_is_lowered() {
    let recreate = deployment("v1", 3).recreate();
    check(&recreate.with(&[set("v1", 2)]), "recreate; scale web-v1 2→3 (new: no old pod runs); status: rollout");
    check(&recreate.with(&[set("v1", 4)]), "recreate; scale web-v1 4→3 (new: no old pod runs); status: rollout");
    check(&recreate.with(&[set("v1", 3)]), WAITS);
}
