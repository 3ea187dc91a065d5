//! Which revision the template of now has, and which ones go: rows of upstream's tests of histories.

use std::sync::Arc;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::testing::{ObjectBuilder, properties};
use statefulset_operator::observe::Observed;
use statefulset_operator::plan::revisions::{
    RevisionReason, Revisions, Update, plan_live_read, plan_revisions, plan_truncation, revisions_with,
};

use crate::fixtures::{OLD, SetBuilder, case, pod, revision, revisions, set, template, template_data};

fn of_template(image: &str) -> ObjectBuilder {
    set(3).with("template", template(image))
}

/// Upstream: `TestStatefulSetControl_getSetRevisions`.
#[test]
fn a_template_has_a_revision_and_an_earlier_one_becomes_the_last() {
    let history = || [revision(1, "zero"), revision(2, "one"), revision(3, "two")];
    let plan = |image: &str, count: usize| {
        let observed = case(of_template(image), []).revisions(history().into_iter().take(count)).observed();
        let plan = plan_revisions(&observed).unwrap();
        let is_settled = matches!(plan.update, Update::Keep(_));
        assert_eq!(plan.settled(&observed).is_some(), is_settled, "{plan}");
        plan
    };
    for (name, image, count, number) in
        [("creates initial revision", "zero", 0, 1), ("creates revision on update", "one", 1, 2)]
    {
        let plan = plan(image, count);
        let Update::Create(new) = &plan.update else { panic!("{name}: {plan}") };
        assert_eq!((new.revision, plan.reason), (number, RevisionReason::NewTemplate), "{name}");
        assert!(new.name.starts_with("web-") && new.labels.get("app") == Some("web"), "{name}: {new:?}");
        assert_eq!(plan.to_string(), format!("create revision {} as number {number} (the template is new)", new.name));
    }
    let same = plan("one", 2).to_string();
    assert_eq!(same, "keep revision web-one (the template is unchanged)", "must not recreate a new revision");
    let back = plan("one", 3).to_string();
    assert_eq!(back, "number revision web-one 2→4 (the template is an earlier one)", "must rollback");
}

/// Upstream: `TestStatefulSetControlRollback`, where the number goes up and the name stays.
#[test]
fn a_rollback_and_another_one_find_their_revisions() {
    let again = [revision(4, "one"), revision(3, "two")];
    let plan = plan_revisions(&case(of_template("two"), []).revisions(again).observed()).unwrap();
    assert_eq!(plan.to_string(), "number revision web-two 3→5 (the template is an earlier one)");
}

/// Upstream: `TestStatefulSetCompatibility`.
#[test]
fn a_revision_of_an_earlier_release_is_the_same_in_other_bytes() {
    let mut served = template("one");
    served["metadata"]["creationTimestamp"] = json!(null);
    let set = |template| set(3).with("template", template);
    let created = ["data", "spec", "template", "metadata", "creationTimestamp"];
    let earlier = || revision(1, "one").set(&created, json!(null));
    let plan = |set, revisions: Vec<ObjectBuilder>| {
        plan_revisions(&case(set, []).revisions(revisions).observed()).unwrap().to_string()
    };
    let exact = "keep revision web-one (the template is unchanged)";
    assert_eq!(plan(set(served), vec![earlier()]), exact);
    assert_eq!(plan(set(template("one")), vec![revision(1, "one")]), exact);
    let both = || [earlier().set(&["metadata", "name"], "web-133"), revision(2, "one")];
    assert_eq!(plan(set(template("one")), both().to_vec()), exact);
    let meant = "keep revision web-one (the template is unchanged but for its bytes)";
    assert_eq!(plan(set(template("one")), vec![earlier()]), meant);
    let back = plan(set(template("one")), vec![earlier(), revision(2, "two")]);
    assert!(back.starts_with("create revision "), "of earlier ones only the bytes count: {back}");
}

/// An apiserver after an upgrade, which sets a field that the newest revision lacks; upstream compares with the defaults
/// that it was compiled with.
#[test]
fn a_template_that_got_a_default_has_the_newest_revision() {
    let mut defaulted = template("two");
    defaulted["spec"]["tidyUp"] = json!(true);
    let set = |template: Value, observed: i64, update: &str| {
        let set = set(3).with("template", template).generation(4);
        set.set(&["status", "observedGeneration"], observed).set(&["status", "updateRevision"], update)
    };
    let history = [revision(1, "one"), revision(2, "two")];
    let observed = |set| case(set, []).revisions(history.clone()).observed();
    let live_read = |set| plan_live_read(&observed(set)).unwrap().map(|live_read| live_read.to_string());
    let asks = "read its newest revision (the template differs from web-two although nobody edited it)";
    assert_eq!(live_read(set(defaulted.clone(), 4, "web-two")).as_deref(), Some(asks));
    assert_eq!(live_read(set(defaulted.clone(), 3, "web-two")), None, "an edit");
    assert_eq!(live_read(set(defaulted.clone(), 4, "web-gone")), None, "that of this generation is gone");
    assert_eq!(live_read(set(template("two"), 4, "web-two")), None);

    let plan = |template: Value| {
        let data = json!({ "spec": { "template": template_data("two") } });
        let observed = observed(set(template, 4, "web-two"));
        let newest_data = Some(Arc::from(to_raw_value(&data).unwrap()));
        plan_revisions(&Observed { newest_data, ..observed }).unwrap().to_string()
    };
    assert_eq!(plan(defaulted.clone()), "label revision web-two (the template is unchanged but for defaults)");
    assert_eq!(plan(template("one")), "number revision web-one 1→3 (the template is an earlier one)");
    assert!(plan(template("three")).ends_with("(the template is new)"));
}

#[test]
fn the_current_revision_is_that_of_the_status_while_it_is_there() {
    let current = |name: &str| {
        let set = of_template("two").set(&["status", "currentRevision"], name);
        let observed = case(set, []).revisions([revision(1, "one"), revision(2, "two")]).observed();
        revisions_with(&observed, Text::new("web-two"), 3)
    };
    let expected =
        |current: &str| Revisions { current: Text::new(current), update: Text::new("web-two"), collision_count: 3 };
    assert_eq!(current("web-one"), expected("web-one"));
    assert_eq!(current("web-gone"), expected("web-two"));
    assert_eq!(current(""), expected("web-two"));
}

/// Upstream: `TestStatefulSetHonorRevisionHistoryLimit` and `TestStatefulSetControlLimitsHistory`.
#[test]
fn revisions_that_nobody_uses_go_beyond_the_limit_the_oldest_first() {
    let history = [revision(1, "a"), revision(2, "b"), revision(3, "old"), revision(4, "c"), revision(5, "new")];
    for (limit, expected) in [
        (0, "delete revisions web-a, web-c (beyond the history limit of 0)"),
        (1, "delete revisions web-a (beyond the history limit of 1)"),
        (2, "delete revisions nothing"),
        (-1, "delete revisions nothing"),
    ] {
        let set = set(3).with("revisionHistoryLimit", limit);
        properties::order_is_irrelevant(&history, |history| {
            let pods = [pod(0, "web-b"), pod(1, OLD)];
            let observed = case(set.clone(), pods).revisions(history.to_vec()).observed();
            let truncation = plan_truncation(&observed, &revisions());
            let is_none = truncation.delete.is_empty();
            let text = if is_none { "delete revisions nothing".to_owned() } else { truncation.to_string() };
            assert_eq!(text, expected);
            text
        });
    }
}
