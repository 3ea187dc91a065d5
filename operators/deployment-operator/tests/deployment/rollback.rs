//! The way back that an annotation asks for.

use deployment_operator::objects::annotations::{REVISION, ROLLBACK_TO};
use deployment_operator::plan::{RollbackTarget, Step};

use crate::builders::*;

fn back_to(revision: &str) -> Deployment {
    deployment("v3", 3).annotate(ROLLBACK_TO, revision)
}

fn three() -> [ReplicaSet; 3] {
    [set("v1", 0), set("v2", 0), set("v3", 3)]
}

#[test]
fn to_the_revision_that_is_asked_for_or_the_one_before() {
    check(&back_to("1").with(&three()), "rollback; roll back to revision 1");
    check(&back_to("0").with(&three()), "rollback; roll back to revision 2");
    // Two of the highest revision: it is also the second highest, and of old ones the oldest counts.
    let [v1, v2, v3] = three();
    let equal =
        [v1, v2.annotate(REVISION, "4"), v3.annotate(REVISION, "5").clone(), set("v4", 0).annotate(REVISION, "4")];
    check(&back_to("0").with(&equal), "rollback; roll back to revision 4");
}

#[test]
fn an_annotation_that_is_empty_or_no_number_asks_for_nothing() {
    for revision in ["", "odd", "1.5"] {
        check(&back_to(revision).with(&three()), "complete; status: rollout");
    }
}

#[test]
fn without_such_a_revision_it_is_given_up() {
    check(
        &back_to("0").with(&[set("v3", 3)]),
        "rollback; Warning DeploymentRollbackRevisionNotFound: Unable to find last revision.; give up the rollback",
    );
    check(
        &back_to("7").with(&three()),
        "rollback; Warning DeploymentRollbackRevisionNotFound: Unable to find the revision to rollback to.; \
         give up the rollback",
    );
}

#[test]
fn to_the_same_template_is_given_up() {
    check(
        &back_to("3").with(&three()),
        "rollback; Warning DeploymentRollbackTemplateUnchanged: The rollback revision contains the same template as \
         current deployment \"web\"; give up the rollback",
    );
}

#[test]
fn the_revision_that_the_new_one_is_about_to_get_counts() {
    // It goes from 3 to 5 in this very sync, so that 4 is the one before.
    let [v1, v2, v3] = three();
    let sets = [v1, v2.annotate(REVISION, "4"), v3];
    check(
        &back_to("0").annotate(REVISION, "3").with(&sets),
        "rollback; update web-v3 deployment.kubernetes.io/revision=5 deployment.kubernetes.io/revision-history=3 \
         (as the deployment says); roll back to revision 4",
    );
}

#[test]
fn a_new_one_with_an_empty_revision_gets_one_that_counts() {
    let [v1, v2, v3] = three();
    let sets = [v1, v2, v3.annotate(REVISION, "")];
    check(
        &back_to("0").with(&sets),
        "rollback; update web-v3 deployment.kubernetes.io/revision=3 deployment.kubernetes.io/revision-history= \
         (as the deployment says); roll back to revision 2",
    );
}

/// Upstream: `TestReentrantRollback`.
#[test]
fn it_touches_no_set_that_is_as_it_should_be() {
    let plan = planned(&back_to("0").with(&three()));
    assert!(matches!(plan.steps[..], [Step::RollBack(_)]), "{plan}");
}

#[test]
fn a_template_without_a_set_gets_one_first() {
    let name = format!("web-{}", deployment("v9", 3).build().spec.template.hash(None));
    let observed = deployment("v9", 3).annotate(ROLLBACK_TO, "1").with(&three());
    check(&observed, &format!("rollback; create {name} of 0"));
}

#[test]
fn template_and_annotations_go_back_and_the_special_ones_stay() {
    let deployment = back_to("1").annotate("cause", "now").annotate("gone", "x").annotate("same", "s");
    let old = set("v1", 0).annotate("cause", "then").annotate("more", "m").annotate("same", "s");
    let new = set("v3", 3).annotate("cause", "now").annotate("gone", "x").annotate("same", "s");
    let plan = planned(&deployment.with(&[old, new]));
    let [Step::RollBack(rollback)] = &plan.steps[..] else { panic!("{plan}") };
    let RollbackTarget { template, set, remove, revision } = rollback.to.as_ref().unwrap();
    assert_eq!(serde_json::to_value(template).unwrap(), crate::builders::template("v1"));
    assert_eq!(format!("{set:?}"), r#"{"cause": "then", "more": "m"}"#);
    assert_eq!(format!("{remove:?}"), r#"["gone"]"#);
    assert_eq!(*revision, 1);
    let event = rollback.event.as_ref().unwrap();
    assert_eq!(
        format!("{:?} {} {}", event.kind, event.reason, event.message),
        "Normal DeploymentRollback Rolled back deployment \"web\" to revision 1"
    );
}
