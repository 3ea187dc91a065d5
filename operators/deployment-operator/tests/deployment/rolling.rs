//! The strategy `RollingUpdate`.

use deployment_operator::observe::Observed;
use deployment_operator::plan::limits::resolve_fenceposts;
use deployment_operator::plan::{StatusScope, Step};
use serde_json::json;
use shared::api::int_or_percent::IntOrPercent;

use crate::builders::*;

const COMPLETE: &str = "complete; status: rollout";

/// The text of a rollout that waits.
fn waits(how_far: &str) -> String {
    format!("rolling update ({how_far}); status: rollout")
}

/// Upstream: `TestDeploymentController_reconcileNewReplicaSet`.
#[test]
fn the_new_one_grows_into_the_room_for_surge() {
    let check_new = |surge: i32, old: i32, new: i32, expected: &str| {
        // Nothing is available, so that nothing of the old one may go.
        let sets = [set("v1", old).available(0), set("v2", new).available(0)];
        let plan = planned(&deployment("v2", 10).rolling(surge, 0).with(&sets)).to_string();
        let first = plan.split("; ").nth(1).unwrap();
        assert_eq!(first, expected, "{plan}");
    };
    check_new(2, 10, 0, "scale web-v2 0→2 (new: room for surge)");
    check_new(2, 5, 0, "scale web-v2 0→7 (new: room for surge)");
    check_new(2, 2, 11, "scale web-v2 11→10 (new: larger than the deployment)");
    check_new(10, 10, 2, "scale web-v2 2→10 (new: room for surge)");
}

/// Upstream: `TestResolveFenceposts`.
#[test]
fn one_pod_may_be_unavailable_where_nothing_else_is_allowed() {
    let limits = |surge: Option<&str>, unavailable: Option<&str>, desired: i32| {
        let [surge, unavailable] = [surge, unavailable].map(|limit| limit.map(IntOrPercent::parse));
        resolve_fenceposts(surge.as_ref(), unavailable.as_ref(), desired).ok()
    };
    assert_eq!(limits(Some("0%"), Some("0%"), 0), Some((0, 1)));
    assert_eq!(limits(Some("39%"), Some("39%"), 10), Some((4, 3)));
    assert_eq!(limits(Some("oops"), Some("39%"), 10), None);
    assert_eq!(limits(Some("55%"), Some("urg"), 10), None);
    assert_eq!(limits(None, Some("39%"), 10), Some((0, 3)));
    assert_eq!(limits(Some("39%"), None, 10), Some((4, 0)));
    assert_eq!(limits(None, None, 10), Some((0, 1)));
    // A share that is rounded down to nothing.
    assert_eq!(limits(Some("0%"), Some("1%"), 2), Some((0, 1)));
}

#[test]
fn without_room_the_new_one_stays() {
    let sets = [set("v1", 10), set("v2", 0)];
    let without_surge = deployment("v2", 10).rolling(0, 2);
    check(&without_surge.with(&sets), "rolling update; scale web-v1 10→8 (old: enough are available); status: rollout");
    let sets = [set("v1", 10), set("v2", 2).available(0)];
    check(&deployment("v2", 10).rolling(2, 0).with(&sets), &waits("2 of 10 updated, 0 of these available, 10 old"));
}

#[test]
fn surge_that_is_no_percentage_fails_the_sync_only_where_it_is_needed() {
    let odd = deployment("v2", 10).rolling("odd", 0);
    check(
        &odd.with(&[set("v2", 9)]),
        "rolling update; fail: invalid value for IntOrString: \"odd\" is not a percentage",
    );
    check(&odd.with(&[set("v2", 10)]), COMPLETE);
    let unset = deployment("v2", 10).spec("strategy", serde_json::json!({ "type": "RollingUpdate" }));
    check(&unset.with(&[set("v2", 9)]), "rolling update; fail: nil value for IntOrString");
}

/// Upstream: `TestDeploymentController_reconcileOldReplicaSets`.
#[test]
fn old_ones_shrink_as_far_as_enough_pods_are_available() {
    let check_old = |unavailable: i32, old: i32, new: i32, available: (i32, i32), expected: &str| {
        let sets = [set("v1", old).available(available.0), set("v2", new).available(available.1)];
        check(&deployment("v2", 10).rolling(0, unavailable).with(&sets), expected);
    };
    let scaled = |steps: &str| format!("rolling update; {steps}; status: rollout");
    check_old(0, 10, 0, (10, 0), &scaled("scale web-v1 10→9 (old: enough are available)"));
    check_old(2, 10, 0, (10, 0), &scaled("scale web-v1 10→8 (old: enough are available)"));
    check_old(2, 10, 0, (8, 0), &scaled("scale web-v1 10→8 (old: unavailable pods)"));
    check_old(
        2,
        10,
        0,
        (9, 0),
        &scaled("scale web-v1 10→9 (old: unavailable pods); scale web-v1 9→8 (old: enough are available)"),
    );
    // Unavailable pods of the new one make no room.
    check_old(2, 8, 2, (8, 0), &waits("2 of 10 updated, 0 of these available, 8 old"));
    // Upstream: `TestDeploymentController_scaleDownOldReplicaSetsForRollingUpdate`.
    check_old(2, 10, 0, (1, 0), &scaled("scale web-v1 10→8 (old: unavailable pods)"));
    check_old(2, 0, 10, (10, 10), COMPLETE);
}

/// Upstream: `TestDeploymentController_cleanupUnhealthyReplicas`.
#[test]
fn unavailable_pods_of_old_ones_go_first_and_oldest_first() {
    // A middle version that is stuck goes before healthy pods of the first one.
    let sets = [set("v1", 8), set("v2", 4).available(0), set("v3", 1).available(0)];
    check(
        &deployment("v3", 10).rolling(3, 2).with(&sets),
        "rolling update; scale web-v2 4→0 (old: unavailable pods); status: rollout",
    );
    let sets = [set("v1", 6).available(5), set("v2", 6).available(3), set("v3", 0)];
    check(
        &deployment("v3", 10).rolling(2, 2).with(&sets),
        "rolling update; scale web-v1 6→5 (old: unavailable pods); scale web-v2 6→3 (old: unavailable pods); \
         status: rollout",
    );
    // Never more than the limit: 12 - 10 - 0.
    let sets = [set("v1", 12).available(8), set("v2", 0)];
    check(
        &deployment("v2", 10).rolling(2, 0).with(&sets),
        "rolling update; scale web-v1 12→10 (old: unavailable pods); status: rollout",
    );
}

#[test]
fn pods_beyond_the_size_of_their_set_count_as_gone() {
    // The status of the old one is older than its size: three of its eight pods are on their way out.
    let sets = [set("v1", 5).available(8), set("v2", 5), set("v3", 3)];
    check(
        &deployment("v3", 12).rolling(1, 0).with(&sets),
        "rolling update; scale web-v1 5→4 (old: enough are available); status: rollout",
    );
}

#[test]
fn the_case_that_upstream_explains_in_its_comments() {
    let ten = |version: &str| deployment(version, 10).rolling(3, 2);
    // A crash-looping update, and a node that takes an old pod with it: nothing more is taken away.
    let crashing = [set("v1", 8).available(7), set("v2", 5).available(0)];
    check(&ten("v2").with(&crashing), &waits("5 of 10 updated, 0 of these available, 8 old"));
    // Rolled back: four of the crashing pods go.
    let sets =
        [set("v1", 8).available(7).annotate("deployment.kubernetes.io/revision", "3"), set("v2", 5).available(0)];
    check(&ten("v1").with(&sets), "rolling update; scale web-v2 5→1 (old: unavailable pods); status: rollout");
    // Rolled over: the third version starts at 0 and the second goes.
    let sets = [set("v1", 8).available(8), set("v2", 5).available(0), set("v3", 0)];
    check(&ten("v3").with(&sets), "rolling update; scale web-v2 5→0 (old: unavailable pods); status: rollout");
}

#[test]
fn a_failure_to_shrink_old_ones_does_not_keep_the_status_back() {
    let before_status = |observed: &Observed| {
        let plan = planned(observed);
        updates(&plan).iter().map(|update| update.before_status).collect::<Vec<bool>>()
    };
    let ten = deployment("v2", 10).rolling(2, 2);
    assert_eq!(before_status(&ten.with(&[set("v1", 10).available(9), set("v2", 2)])), [false, false]);
    assert_eq!(before_status(&ten.with(&[set("v1", 10), set("v2", 0)])), [true]);
}

#[test]
fn a_set_that_is_being_deleted_takes_part() {
    let dying = set("v2", 0).meta("deletionTimestamp", time(NOW));
    check(
        &deployment("v2", 3).rolling(1, 0).with(&[set("v1", 3), dying]),
        "rolling update; scale web-v2 0→1 (new: room for surge); status: rollout",
    );
}

#[test]
fn a_strategy_this_build_does_not_know_fails_the_sync() {
    check(
        &deployment("v1", 3).strategy("Odd").with(&[set("v1", 3)]),
        "unknown strategy; fail: unexpected deployment strategy type: Odd",
    );
}

#[test]
fn nothing_is_done_for_a_selector_that_this_build_does_not_know() {
    let odd = json!({ "matchExpressions": [{ "key": "app", "operator": "Odd" }] });
    let observed = deployment("v2", 3).spec("selector", odd).with(&[set("v1", 3)]);
    check(&observed, "invalid selector: \"Odd\" is not a valid label selector operator");
    assert_eq!(planned(&observed).status, StatusScope::Decided);
}

mod cleanup {
    use super::*;

    /// Version, size, pods.
    fn old(version: &str, replicas: i32, pods: i32) -> ReplicaSet {
        set(version, replicas).status("replicas", pods)
    }

    /// A complete rollout to v9 with these old ones.
    #[track_caller]
    fn check_deleted(limit: i32, old: &[ReplicaSet], expected: &[&str]) {
        let complete = deployment("v9", 1).spec("revisionHistoryLimit", limit).counts(1, 1, 1, 1);
        let sets: Vec<ReplicaSet> = old.iter().cloned().chain([set("v9", 1)]).collect();
        // Paused: nothing but the clean-up happens to old ones that have pods.
        let observed = complete.status("observedGeneration", 2).recreate().paused().with(&sets);
        let plan = planned(&observed);
        let mut deleted = Vec::new();
        for step in &plan.steps {
            if let Step::DeleteReplicaSet(deletion) = step {
                deleted.push(deletion.key.name().trim_start_matches("web-").to_owned());
            }
        }
        assert_eq!(deleted, expected, "{plan}");
    }

    /// Upstream: `TestDeploymentController_cleanupDeployment`.
    #[test]
    fn only_empty_ones_beyond_the_limit_go() {
        let three = [old("v1", 0, 0), old("v2", 0, 0), old("v3", 0, 0)];
        check_deleted(1, &three, &["v1", "v2"]);
        check_deleted(0, &[old("v1", 0, 0), old("v2", 0, 1), old("v3", 1, 0), old("v4", 1, 1)], &["v1"]);
        check_deleted(0, &three[..2], &["v1", "v2"]);
        check_deleted(0, &[old("v1", 1, 1), old("v2", 1, 1)], &[]);
        check_deleted(0, &[old("v1", 0, 0).meta("deletionTimestamp", time(NOW))], &[]);
        check_deleted(i32::MAX, &three, &[]);
        check_deleted(5, &three, &[]);
        // A ReplicaSet that its own controller has not looked at yet may have pods.
        check_deleted(0, &[old("v1", 0, 0).meta("generation", 2)], &[]);
    }

    /// Upstream: `TestDeploymentController_cleanupDeploymentOrder`.
    #[test]
    fn the_lowest_revision_goes_first() {
        let of = |version: &str, revision: &str| match revision {
            "" => old(version, 0, 0).without("deployment.kubernetes.io/revision"),
            revision => old(version, 0, 0).annotate("deployment.kubernetes.io/revision", revision),
        };
        check_deleted(1, &[of("v1", "1"), of("v2", "2")], &["v1"]);
        check_deleted(1, &[of("v1", "2"), of("v2", "1")], &["v2"]);
        check_deleted(1, &[of("v1", "1"), of("v2", "")], &["v2"]);
        check_deleted(1, &[of("v1", ""), of("v2", "2")], &["v1"]);
        check_deleted(2, &[of("v1", "3"), of("v2", "1"), of("v3", "4"), of("v4", "2")], &["v2", "v4"]);
        // By age where a revision is no number.
        check_deleted(1, &[of("v1", "2"), of("v2", "odd"), of("v3", "1")], &["v1", "v2"]);
        // One that has pods is not replaced by a later one.
        check_deleted(1, &[old("v1", 1, 1), of("v2", "2"), of("v3", "3")], &["v2"]);
        check_deleted(1, &[old("v1", 1, 1), old("v2", 1, 1), of("v3", "3")], &[]);
    }

    #[test]
    fn only_a_rollout_that_was_written_as_complete_cleans_up() {
        let one = deployment("v2", 1).rolling(1, 0).spec("revisionHistoryLimit", 0);
        let sets = [old("v1", 0, 0), set("v2", 1)];
        let complete = one.clone().counts(1, 1, 1, 1).status("observedGeneration", 2);
        let deletes = "complete; delete web-v1 (beyond the history limit); status: rollout";
        check(&complete.with(&sets), deletes);
        check(&complete.clone().recreate().with(&sets), deletes);
        check(&one.with(&sets), COMPLETE);
        check(&one.clone().counts(1, 1, 1, 1).status("observedGeneration", 1).with(&sets), COMPLETE);
        check(&complete.clone().spec("revisionHistoryLimit", serde_json::Value::Null).with(&sets), COMPLETE);
        // A scaling event is no occasion.
        let sets = [old("v1", 0, 0), set("v2", 1).sized_for(2, 3)];
        check(&complete.with(&sets), "scaling; note the size on web-v2 (the only one); status: counts");
    }

    #[test]
    fn a_paused_one_with_a_rollback_in_flight_cleans_nothing_up() {
        let paused = deployment("v2", 1).spec("revisionHistoryLimit", 0).paused();
        let sets = [old("v1", 0, 0), set("v2", 1)];
        check(&paused.with(&sets), "paused; delete web-v1 (beyond the history limit); status: counts");
        let rolling_back = paused.annotate("deprecated.deployment.rollback.to", "1");
        check(&rolling_back.with(&sets), "paused; status: counts");
    }

    #[test]
    fn a_deletion_names_what_it_means() {
        let complete = deployment("v2", 1).spec("revisionHistoryLimit", 0).paused();
        let plan = planned(&complete.with(&[old("v1", 0, 0), set("v2", 1)]));
        let [Step::DeleteReplicaSet(deletion)] = &plan.steps[..] else { panic!("{plan}") };
        assert_eq!(deletion.uid.to_string(), uid("web-v1"));
        assert_eq!(deletion.resource_version.to_string(), "101");
    }
}
