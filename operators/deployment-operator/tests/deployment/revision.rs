//! The annotations that the Deployment and its new ReplicaSet have about each other.

use deployment_operator::objects::annotations::{LAST_APPLIED, REVISION, REVISION_HISTORY};
use deployment_operator::plan::Step;

use crate::builders::*;

/// Checks the update of the new one, which comes first.
#[track_caller]
fn check_update(deployment: &Deployment, sets: &[ReplicaSet], expected: &str) {
    let plan = planned(&deployment.with(sets)).to_string();
    assert_eq!(plan, format!("complete; {expected}status: rollout"));
}

/// Upstream: `TestFindNewReplicaSet`, `TestFindOldReplicaSets`.
#[test]
fn of_two_sets_of_the_template_the_oldest_is_the_new_one() {
    let twin = set("v3", 1).of_template("v2");
    check(
        &deployment("v2", 1).rolling(1, 0).with(&[set("v2", 0).annotate(REVISION, "5"), twin.clone()]),
        "rolling update; scale web-v2 0→1 (new: room for surge); status: rollout",
    );
    // By name where both are of one second.
    let twins = [twin.created(2), set("v2", 1).annotate(REVISION, "5")];
    check(
        &deployment("v2", 1).rolling(1, 0).annotate(REVISION, "5").with(&twins),
        "rolling update; scale web-v3 1→0 (old: enough are available); status: rollout",
    );
}

#[test]
fn annotations_of_the_deployment_are_copied_and_none_is_removed() {
    let one = deployment("v1", 1).annotate("a", "1").annotate("b", "");
    check_update(&one, &[set("v1", 1)], "update web-v1 a=1 b= (as the deployment says); ");
    check_update(
        &one,
        &[set("v1", 1).annotate("a", "0").annotate("b", "")],
        "update web-v1 a=1 (as the deployment says); ",
    );
    let more = set("v1", 1).annotate("a", "1").annotate("b", "").annotate("c", "1");
    check_update(&one, &[more], "");
    for skipped in [REVISION_HISTORY, "deployment.kubernetes.io/desired-replicas", LAST_APPLIED] {
        check_update(&deployment("v1", 1).annotate(skipped, "1"), &[set("v1", 1)], "");
    }
}

#[test]
fn min_ready_seconds_follow() {
    let one = deployment("v1", 1).spec("minReadySeconds", 7);
    check_update(&one, &[set("v1", 1)], "update web-v1 minReadySeconds=7 (as the deployment says); ");
}

/// Upstream: `TestAnnotationUtils`.
#[test]
fn a_revision_is_raised_above_the_old_ones_and_never_lowered() {
    let one = deployment("v1", 1).annotate(REVISION, "x");
    let with = |new: ReplicaSet| [new, set("v3", 0)];
    let raised = "update web-v1 deployment.kubernetes.io/revision=4";
    let history = "deployment.kubernetes.io/revision-history";
    check_update(&one, &with(set("v1", 1)), &format!("{raised} {history}=1 (as the deployment says); "));
    let of_none = set("v1", 1).without(REVISION);
    check_update(&one, &with(of_none), &format!("{raised} (as the deployment says); "));
    let higher = set("v1", 1).annotate(REVISION, "9");
    check(&one.with(&with(higher)), "complete; revision 9; status: rollout");
    let same = set("v1", 1).annotate(REVISION, "4");
    check(&one.with(&with(same)), "complete; revision 4; status: rollout");
}

#[test]
fn the_deployment_gets_the_revision_once_the_set_has_it() {
    let one = deployment("v2", 1).annotate(REVISION, "1");
    check(&one.with(&[set("v1", 0), set("v2", 1)]), "complete; revision 2; status: rollout");
    check(
        &one.with(&[set("v1", 0).annotate(REVISION, "2"), set("v2", 1)]),
        "complete; update web-v2 deployment.kubernetes.io/revision=3 \
         deployment.kubernetes.io/revision-history=2 (as the deployment says); status: rollout",
    );
}

#[test]
fn a_revision_that_is_no_number_is_left_alone() {
    let odd = set("v1", 1).annotate(REVISION, "odd");
    let one = deployment("v1", 1).annotate("a", "1").annotate(REVISION, "odd");
    check_update(&one, std::slice::from_ref(&odd), "");
    // Annotations that are to be copied go along with another change.
    let ready = one.spec("minReadySeconds", 7);
    check_update(&ready, &[odd], "update web-v1 a=1 minReadySeconds=7 (as the deployment says); ");
}

#[test]
fn an_update_and_a_scaling_of_the_new_one_are_one_write() {
    let plan = planned(&deployment("v1", 3).rolling(1, 0).annotate("a", "1").with(&[set("v1", 0), set("v2", 3)]));
    assert_eq!(
        plan.to_string(),
        "rolling update; scale web-v1 0→1 a=1 deployment.kubernetes.io/revision=3 \
         deployment.kubernetes.io/revision-history=1 (new: room for surge); status: rollout"
    );
    let [Step::UpdateReplicaSet(update)] = &plan.steps[..] else { panic!("{plan}") };
    assert!(update.before_status);
    assert_eq!(update.annotations.len(), 5);
    assert_eq!(update.event.as_ref().unwrap().message, "Scaled up replica set web-v1 from 0 to 1");
}

#[test]
fn the_oldest_revisions_make_room_in_the_history() {
    let history_after = |history: &str| {
        let sets = [
            set("v1", 1).annotate(REVISION, "5000").annotate(REVISION_HISTORY, history),
            set("v2", 0).annotate(REVISION, "5001"),
        ];
        let plan = planned(&deployment("v1", 1).with(&sets));
        let Some(Step::UpdateReplicaSet(update)) = plan.steps.first() else { panic!("{plan}") };
        update.annotations.get(REVISION_HISTORY).map(ToString::to_string)
    };
    let after = |history: &str| history_after(history).unwrap();
    assert_eq!(after(""), "5000");
    assert_eq!(after(",1"), "5000");
    assert_eq!(after("1,2"), "1,2,5000");
    let full: Vec<String> = (1000..1400).map(|number| number.to_string()).collect();
    let (full, rest) = (full.join(","), full[1..].join(","));
    assert_eq!(full.len(), 1999);
    assert_eq!(after(&full), format!("{rest},5000"));
    assert_eq!(after(&format!("1,{rest}")), format!("{rest},5000"));
    assert_eq!(after(&"9".repeat(3000)), "5000");
}

#[test]
fn one_being_deleted_keeps_its_notes_and_counts_right() {
    let dying = deployment("v2", 3).being_deleted().annotate(REVISION, "1");
    check(&dying.with(&[set("v1", 3), set("v2", 0)]), "being deleted; revision 2; status: counts");
    // Upstream: `TestSyncDeploymentDontDoAnythingDuringDeletion`.
    check(&deployment("v2", 3).being_deleted().with(&[set("v1", 3)]), "being deleted; status: counts");
}

/// Upstream: `TestDontSyncDeploymentsWithEmptyPodSelector`.
#[test]
fn an_empty_selector_selects_nothing() {
    let everything = deployment("v1", 3).spec("selector", serde_json::json!({}));
    check(
        &everything.with(&[set("v1", 1)]),
        "selects everything; Warning SelectingAll: This deployment is selecting all pods. A non-empty selector is \
         required.; status: observed generation",
    );
}
