//! Which revision the template of now has, and which ones go: rows of upstream's tests of histories.

use std::sync::Arc;

use daemonset_operator::objects::{GENERATION_ANNOTATION, GENERATION_LABEL};
use daemonset_operator::observe::Observed;
use daemonset_operator::plan::claim::{plan_pod_claim, plan_revision_claim};
use daemonset_operator::plan::revisions::{Revisions, plan_live_read, plan_revisions, plan_truncation};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
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

/// An apiserver after an upgrade, which sets a field that the newest revision lacks.
#[test]
fn a_template_that_got_a_default_has_the_newest_revision() {
    let mut defaulted = template("two");
    defaulted["spec"]["tidyUp"] = json!(true);
    let set = |template: &Value, observed: i64| {
        let set = set().with("template", template.clone()).generation(4).annotation(GENERATION_ANNOTATION, "7");
        set.set(&["status", "observedGeneration"], observed)
    };
    let observed = |set: ObjectBuilder, pods: &[ObjectBuilder]| {
        case(set, [], pods.to_vec()).revisions([revision(1, "one"), revision(2, "two")]).observed()
    };
    let live_read = |set: ObjectBuilder, pods: &[ObjectBuilder]| {
        plan_live_read(&observed(set, pods)).unwrap().map(|live_read| live_read.to_string())
    };
    let of_generation = |hash: &str| [pod("web-1", "a", hash).label(GENERATION_LABEL, "7")];
    let asks =
        Some("read its newest revision (the template differs from web-two although nobody edited it)".to_owned());
    assert_eq!(live_read(set(&defaulted, 4), &[]), asks);
    assert_eq!(live_read(set(&defaulted, 4), &of_generation("two")), asks);
    assert_eq!(live_read(set(&defaulted, 4), &of_generation("gone")), None, "that of this generation is gone");
    assert_eq!(live_read(set(&defaulted, 3), &[]), None, "an edit");
    assert_eq!(live_read(set(&template("two"), 4), &[]), None);

    let plan = |template: &Value| {
        let data = json!({ "spec": { "template": revision(2, "two").json()["data"]["spec"]["template"] } });
        let newest_data = Some(Arc::from(to_raw_value(&data).unwrap()));
        plan_revisions(&Observed { newest_data, ..observed(set(template, 4), &[]) }).unwrap()
    };
    let labels = plan(&defaulted);
    assert_eq!(labels.to_string(), "label revision web-two (the template is unchanged but for defaults)");
    assert_eq!((labels.is_settled(), labels.hash()), (false, Text::new("two")));
    let back = "number revision web-one 1→3 (the template is an earlier one)";
    assert_eq!(plan(&template("one")).to_string(), back);
    assert!(plan(&template("three")).to_string().ends_with("(the template is new)"));
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
