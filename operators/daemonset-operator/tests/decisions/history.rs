//! Which revision the template of now has, and which ones go: rows of upstream's tests of histories.

use std::sync::Arc;

use daemonset_operator::plan::claim::{plan_pod_claim, plan_revision_claim};
use daemonset_operator::plan::revisions::{Revisions, plan_revisions, plan_truncation};
use serde_json::json;
use shared::api::intern::Text;
use shared::testing::{ObjectBuilder, properties};

use crate::fixtures::{NEW, SetBuilder, case, orphan, pod, revision, set, template};

fn of_template(image: &str) -> ObjectBuilder {
    set().with("template", template(image))
}

fn text(set: ObjectBuilder, pods: &[ObjectBuilder], revisions: &[ObjectBuilder]) -> String {
    properties::order_is_irrelevant(revisions, |revisions| {
        plan_revisions(&case(set.clone(), [], pods.to_vec()).revisions(revisions.to_vec()).observed())
            .unwrap()
            .to_string()
    });
    plan_revisions(&case(set, [], pods.to_vec()).revisions(revisions.to_vec()).observed()).unwrap().to_string()
}

/// Upstream: `constructHistory` in `TestDaemonSetUpdatesPods` and the e2e tests of roll-backs.
#[test]
fn a_template_has_a_revision_and_an_earlier_one_becomes_the_last() {
    let name = |image: &str| {
        let plan = plan_revisions(&case(of_template(image), [], []).observed()).unwrap();
        format!("web-{}", plan.hash())
    };
    let first = text(of_template("one"), &[], &[]);
    assert_eq!(first, format!("create revision {} as number 1 (the template is new)", name("one")));
    let history = [revision(1, "one"), revision(2, "two")];
    let third = text(of_template("three"), &[], &history);
    assert_eq!(third, format!("create revision {} as number 3 (the template is new)", name("three")));
    assert_eq!(text(of_template("two"), &[], &history), "keep revision web-two (the template is unchanged)");
    let back = "number revision web-one 1→3 (the template is an earlier one)";
    assert_eq!(text(of_template("one"), &[], &history), back);
}

#[test]
fn a_collision_gives_another_name() {
    let hash = |set: ObjectBuilder| plan_revisions(&case(set, [], []).observed()).unwrap().hash();
    let counted = |count: i32| hash(of_template("one").set(&["status", "collisionCount"], count));
    let hashes = [hash(of_template("one")), counted(0), counted(1)];
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2], "{hashes:?}");
}

/// Upstream: `dedupCurHistories`.
#[test]
fn of_several_revisions_of_one_template_the_last_one_stays() {
    let twice = [revision(1, "one"), revision(3, "one").set(&["metadata", "name"], "web-again").uid_of("again")];
    let twice = [twice[0].clone(), twice[1].clone().label("controller-revision-hash", "again")];
    let pods = [pod("web-1", "a", "one"), pod("web-2", "b", "again"), pod("web-3", "c", "other")];
    let expected =
        "keep revision web-again; label web-1, web-3; delete its duplicates web-one (the template is unchanged)";
    assert_eq!(text(of_template("one"), &pods, &twice), expected);
    let observed = case(of_template("one"), [], pods).revisions(twice).observed();
    let revisions = plan_revisions(&observed).unwrap().revisions(&observed);
    assert_eq!(revisions, Revisions { hash: Text::new("again"), old: Vec::new() });
    assert!(observed.relabelled("again").pods.iter().all(|pod| pod.has_hash("again")));
}

#[test]
fn a_revision_without_its_label_gets_its_name() {
    let bare = revision(1, "one").set(&["metadata", "labels"], json!({ "app": "web" }));
    let expected = "label revisions web-one; keep revision web-one (the template is unchanged)";
    assert_eq!(text(of_template("one"), &[], std::slice::from_ref(&bare)), expected);
    let plan = plan_revisions(&case(of_template("one"), [], []).revisions([bare]).observed()).unwrap();
    assert!(*plan.hash() == *"web-one" && !plan.is_settled());
}

/// Upstream: `TestControlledHistories`.
#[test]
fn orphans_are_adopted_and_those_that_are_selected_no_more_are_released() {
    let revisions = [
        revision(1, "own"),
        orphan(revision(2, "orphan")),
        orphan(revision(3, "elsewhere")).namespace("elsewhere"),
        revision(4, "other").label("app", "other"),
    ];
    let pods = [
        pod("web-1", "a", NEW),
        orphan(pod("web-2", "b", NEW)).phase("Failed"),
        orphan(pod("web-3", "b", NEW)).terminating(),
        pod("web-4", "c", NEW).label("app", "other"),
    ];
    let observed = case(set(), [], pods).revisions(revisions).observed();
    let expected = "adopt web-orphan (selected, and nobody's); release web-other (selected no more)";
    assert_eq!(plan_revision_claim(&observed).to_string(), expected);
    let expected = "adopt web-2 (selected, and nobody's); release web-4 (selected no more)";
    assert_eq!(plan_pod_claim(&observed).to_string(), expected);
}

/// Upstream: `cleanupHistory`, and `TestGetNodesToDaemonPods` for pods that have ended.
#[test]
fn revisions_that_no_pod_uses_go_beyond_the_limit_the_oldest_first() {
    let history = [revision(1, "a"), revision(2, "b"), revision(3, "c")];
    for (limit, expected) in [(0, "web-a, web-c"), (1, "web-a, web-c"), (2, "web-a"), (3, ""), (-1, "")] {
        let pods = [pod("web-1", "n", "b").phase("Failed").terminating()];
        let case = case(set().with("revisionHistoryLimit", limit), [], pods).revisions(history.clone());
        let observed = case.observed();
        let revisions = Revisions { hash: Text::new(NEW), old: observed.revisions.iter().map(Arc::clone).collect() };
        let truncation = plan_truncation(&observed, &revisions).to_string();
        assert_eq!(truncation, format!("delete revisions {expected} (beyond the history limit of {limit})"));
    }
}
