//! Scaling without a rollout.

use deployment_operator::objects::annotations::{DESIRED_REPLICAS, MAX_REPLICAS};
use deployment_operator::plan::scale::proportion;

use crate::builders::*;

/// The sizes after the sync, by version; a paused Deployment is scaled and nothing else.
#[track_caller]
fn check_sizes(deployment: &Deployment, sets: &[ReplicaSet], expected: &[(&str, i32)]) {
    let observed = deployment.clone().paused().with(sets);
    let plan = planned(&observed);
    let mut sizes: Vec<(String, i32)> = observed
        .replica_sets
        .iter()
        .map(|set| (set.metadata.name().trim_start_matches("web-").to_owned(), set.spec.replicas))
        .collect();
    for update in updates(&plan) {
        let scale = update.scale.unwrap();
        let (_, size) = sizes.iter_mut().find(|(version, _)| update.key.name() == format!("web-{version}")).unwrap();
        assert_eq!(*size, scale.from);
        *size = scale.to;
    }
    let expected: Vec<(String, i32)> = expected.iter().map(|(version, size)| ((*version).to_owned(), *size)).collect();
    assert_eq!(sizes, expected, "{plan}");
}

/// A Deployment of template `version` that is `to` now, and ReplicaSets of the given sizes that noted `from`.
#[track_caller]
fn check_resize(version: &str, (from, to): (i32, i32), sizes: &[(&str, i32)], expected: &[(&str, i32)]) {
    let sets: Vec<ReplicaSet> = sizes.iter().map(|(version, size)| set(version, *size).sized_for(from, from)).collect();
    check_sizes(&deployment(version, to), &sets, expected);
}

/// Upstream: `TestScale`.
#[test]
fn the_only_active_one_gets_the_whole_size() {
    check_resize("v1", (10, 12), &[("v1", 10)], &[("v1", 12)]);
    check_resize("v1", (10, 5), &[("v1", 10)], &[("v1", 5)]);
    check_resize("v3", (6, 6), &[("v1", 0), ("v2", 0), ("v3", 0)], &[("v1", 0), ("v2", 0), ("v3", 6)]);
    check_resize("v9", (6, 6), &[("v1", 0), ("v2", 0)], &[("v1", 0), ("v2", 6)]);
    check_resize("v2", (4, 6), &[("v1", 4), ("v2", 0)], &[("v1", 6), ("v2", 0)]);
}

/// Upstream: `TestScale`.
#[test]
fn several_keep_their_proportions() {
    check_resize("v2", (5, 10), &[("v1", 3), ("v2", 2)], &[("v1", 6), ("v2", 4)]);
    check_resize("v2", (5, 3), &[("v1", 3), ("v2", 2)], &[("v1", 2), ("v2", 1)]);
    check_resize("v2", (9, 4), &[("v1", 1), ("v2", 8)], &[("v1", 0), ("v2", 4)]);
    check_resize("v3", (7, 10), &[("v1", 2), ("v2", 3), ("v3", 2)], &[("v1", 3), ("v2", 4), ("v3", 3)]);
    check_resize("v3", (13, 8), &[("v1", 3), ("v2", 8), ("v3", 2)], &[("v1", 2), ("v2", 5), ("v3", 1)]);
    check_resize("v3", (6, 0), &[("v1", 1), ("v2", 2), ("v3", 3)], &[("v1", 0), ("v2", 0), ("v3", 0)]);
    // "change both size and template"
    check_resize("v9", (10, 14), &[("v1", 3), ("v2", 7)], &[("v1", 4), ("v2", 10)]);
}

/// Upstream: `TestScale`, leftover distribution.
#[test]
fn of_equal_ones_the_newest_grows_first_and_the_oldest_shrinks_first() {
    check_resize("v3", (3, 4), &[("v1", 1), ("v2", 1), ("v3", 1)], &[("v1", 1), ("v2", 1), ("v3", 2)]);
    check_resize("v3", (3, 2), &[("v1", 1), ("v2", 1), ("v3", 1)], &[("v1", 0), ("v2", 1), ("v3", 1)]);
    check_resize("v9", (4, 5), &[("v1", 2), ("v2", 2)], &[("v1", 2), ("v2", 3)]);
}

/// Upstream: `TestScale`, "deployment with surge pods", "change both surge and size".
#[test]
fn surge_is_shared_out_too() {
    let of_surge = |surge: i32| deployment("v2", 10 * surge).rolling(surge, 0);
    check_sizes(
        &of_surge(2),
        &[set("v1", 6).sized_for(10, 12), set("v2", 6).sized_for(10, 12)],
        &[("v1", 11), ("v2", 11)],
    );
    check_sizes(
        &deployment("v2", 50).rolling(6, 0),
        &[set("v1", 8).sized_for(10, 13), set("v2", 5).sized_for(10, 13)],
        &[("v1", 34), ("v2", 22)],
    );
    // Upstream: `TestRollingUpdateAndProportionalScalingForDeploymentPodReplacement`; pods that are on their way out take
    // no part.
    let going = |version, size| set(version, size).sized_for(100, 120).status("terminatingReplicas", 15);
    check_sizes(
        &deployment("v2", 120).rolling(20, 0),
        &[going("v1", 100), going("v2", 20).available(0)],
        &[("v1", 117), ("v2", 23)],
    );
}

/// Upstream: `TestScale`, "failed rs update".
#[test]
fn one_that_was_missed_the_last_time_gets_its_share_now() {
    let sets = [set("v1", 1).sized_for(5, 5), set("v2", 1).sized_for(3, 3), set("v3", 2).sized_for(5, 5)];
    check(&deployment("v3", 5).with(&sets), "scaling; scale web-v2 1→2 (in proportion); status: counts");
}

#[test]
fn a_size_that_stays_is_noted_where_the_note_is_old() {
    // Upstream writes with force: the notes are the base of the next proportions.
    let sets = [set("v1", 3).sized_for(4, 4), set("v2", 2).sized_for(5, 5)];
    check(&deployment("v2", 5).with(&sets), "scaling; note the size on web-v1 (in proportion); status: counts");
}

#[test]
fn the_only_one_notes_a_size_that_it_has_by_chance() {
    // A rollout from 12 pods had come to 9 old ones when 9 was asked for. Upstream is stuck there.
    let sets = [set("v1", 9).sized_for(12, 12), set("v2", 0).sized_for(12, 12)];
    let nine = deployment("v2", 9).rolling(0, "25%");
    check(&nine.with(&sets), "scaling; note the size on web-v1 (the only one); status: counts");
    let noted = [set("v1", 9), set("v2", 0)];
    check(&nine.with(&noted), "rolling update; scale web-v1 9→7 (old: enough are available); status: rollout");
    // Without an event there is nothing to note.
    let sets = [set("v1", 9).annotate("unsized", "")];
    check(&nine.paused().with(&sets), "paused; status: counts");
}

/// Upstream: `TestScale`, "saturated but broken new replica set does not affect old pods".
#[test]
fn old_ones_go_only_when_the_new_one_has_all_its_pods() {
    let sized = |set: ReplicaSet| set.sized_for(2, 3);
    let paused = deployment("v2", 2).rolling(1, 1).paused();
    let broken = [sized(set("v1", 1)), sized(set("v2", 2).available(0))];
    check(&paused.with(&broken), "paused; status: counts");
    let whole = [sized(set("v1", 1)), sized(set("v2", 2))];
    check(&paused.with(&whole), "paused; scale web-v1 1→0 (the new one has all pods); status: counts");
    // The new one does not know yet that it is to have all.
    let unaware = [sized(set("v1", 1)), set("v2", 2).sized_for(1, 2)];
    check(&paused.with(&unaware), "paused; note the size on web-v2 (in proportion); status: counts");
}

#[test]
fn saturated_old_ones_go_newest_first() {
    check(
        &deployment("v3", 2).paused().with(&[set("v1", 1), set("v2", 1), set("v3", 2)]),
        "paused; scale web-v2 1→0 (the new one has all pods); scale web-v1 1→0 (the new one has all pods); \
         status: counts",
    );
}

#[test]
fn several_sets_of_recreate_are_left_to_the_rollout() {
    // The strategy was changed in the middle of a rollout. Upstream is stuck there.
    let sets = [set("v1", 1).sized_for(2, 2), set("v2", 1).sized_for(2, 2)];
    check(
        &deployment("v2", 4).recreate().with(&sets),
        "recreate; scale web-v1 1→0 (old: all pods are recreated); status: rollout",
    );
}

#[test]
fn recreate_scales_no_proportions() {
    let sets = [set("v1", 1), set("v2", 1)];
    check(&deployment("v2", 4).recreate().paused().with(&sets), "paused; status: counts");
    check(&deployment("v2", 4).recreate().paused().with(&[]), "paused; status: counts");
}

#[test]
fn only_an_active_set_with_a_valid_note_of_another_size_makes_a_scaling_event() {
    let scaling = "scaling; scale web-v1 4→5 (the only one); status: counts";
    let rolling = "rolling update; scale web-v1 4→5 (new: room for surge); status: rollout";
    let five = deployment("v1", 5).rolling(1, 0);
    check(&five.with(&[set("v1", 4).sized_for(4, 5)]), scaling);
    check(&five.with(&[set("v1", 4).sized_for(5, 6)]), rolling);
    check(&five.with(&[set("v1", 4).annotate("unsized", "")]), rolling);
    // Upstream: `TestGetNonNegativeInt32FromAnnotation`.
    for invalid in ["-1", "2147483648", "+4", "", "x"] {
        check(&five.with(&[set("v1", 4).annotate(DESIRED_REPLICAS, invalid)]), rolling);
    }
    check(&five.with(&[set("v1", 4).annotate(DESIRED_REPLICAS, "2147483647")]), scaling);
    check(
        &five.with(&[set("v1", 0).sized_for(4, 5)]),
        "rolling update; scale web-v1 0→5 (new: room for surge); status: rollout",
    );
}

/// Upstream: `TestGetReplicaSetFraction`.
#[test]
fn a_set_grows_as_its_deployment_does() {
    let check_fraction = |(replicas, surge, status): (i32, i32, i32), size: i32, max: &str, expected: i64| {
        let spec = deployment("v1", replicas).rolling(surge, 1).build().spec;
        let set = set("v1", size).annotate(MAX_REPLICAS, max).build();
        let no_limit = if expected < 0 { i64::MIN / 2 } else { i64::MAX / 2 };
        assert_eq!(proportion(&set, &spec, status, no_limit, 0), expected);
    };
    check_fraction((0, 0, 0), 10, "", -10);
    check_fraction((10, 0, 0), 5, "", 0);
    check_fraction((10, 0, 0), 5, "0", 0);
    check_fraction((120, 0, 100), 50, "", 10);
    check_fraction((120, 0, 100), 50, "0", 10);
    check_fraction((120, 0, 0), 50, "100", 10);
    check_fraction((120, 10, 0), 50, "110", 9);
    check_fraction((10, 0, 0), 6, "12", -1);
    check_fraction((100, 10, 0), 50, "130", -8);
    // Half a pod is a whole one.
    check_fraction((15, 0, 0), 1, "10", 1);
}

#[test]
fn the_base_of_a_proportion_is_the_noted_maximum_or_else_the_present_size() {
    let sizes = |max: Option<&str>, status: i32| {
        let of = |version, size| match max {
            Some(max) => set(version, size).sized_for(100, 110).annotate(MAX_REPLICAS, max),
            None => set(version, size).sized_for(100, 110).without(MAX_REPLICAS),
        };
        let observed =
            deployment("v2", 120).rolling(10, 0).status("replicas", status).with(&[of("v1", 50), of("v2", 60)]);
        updates(&planned(&observed)).iter().map(|update| update.scale.unwrap().to).collect::<Vec<i32>>()
    };
    // 60 of 110 → 71 of 130, 50 of 110 → 59 of 130.
    assert_eq!(sizes(Some("110"), 0), [71, 59]);
    assert_eq!(sizes(None, 110), [71, 59]);
    assert_eq!(sizes(Some("0"), 110), [71, 59]);
    assert_eq!(sizes(Some("odd"), 110), [71, 59]);
    // No base at all: nobody has a share, and the largest gets the leftover.
    assert_eq!(sizes(Some("0"), 0), [80, 50]);
    // A wrong base is kept within limits.
    assert_eq!(sizes(Some("1"), 0), [80, 50]);
}

#[test]
fn the_largest_sizes_do_not_overflow() {
    let max = i32::MAX;
    check_sizes(
        &deployment("v2", max).rolling("100%", 0),
        &[set("v1", max).sized_for(1, 1), set("v2", max).sized_for(1, 1)],
        &[("v1", 0), ("v2", max)],
    );
}
