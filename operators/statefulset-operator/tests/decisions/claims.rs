//! Whose pods and revisions there are, and whose claims.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::api::object::Object;
use shared::testing::ObjectBuilder;
use statefulset_operator::objects::pod::Pod;
use statefulset_operator::plan::claim::{plan_pod_claim, plan_revision_claim};
use statefulset_operator::plan::claim_owners::PodIdentity;

use crate::fixtures::{
    Case, NEW, SetBuilder, case, claim, named, of_pod, of_set, orphan, owned, owner, pod, revision, set,
};

fn names<T: Object>(objects: &[Arc<T>]) -> Vec<&str> {
    objects.iter().map(|object| object.meta().name()).collect()
}

/// The pods that are kept, adopted and released.
#[track_caller]
fn check(case: &Case, expected: [&[&str]; 3]) {
    let claim = plan_pod_claim(&case.observed());
    assert_eq!([names(&claim.owned), names(&claim.adopt), names(&claim.release)], expected.map(<[&str]>::to_vec));
}

fn of_other(pod: ObjectBuilder) -> ObjectBuilder {
    pod.label("app", "other")
}

/// Upstream: `TestGetPodsForStatefulSetAdopt`.
#[test]
fn an_orphan_is_adopted_if_labels_and_name_are_right() {
    let pods = [
        pod(1, NEW),
        orphan(pod(2, NEW)),
        orphan(of_other(pod(3, NEW))),
        orphan(named("xweb-4", 4, NEW)),
        orphan(pod(0, NEW)).terminating(),
    ];
    check(&case(set(5), pods), [&["web-1"], &["web-2"], &[]]);
}

/// Upstream: `TestGetPodsForStatefulSetRelease`.
#[test]
fn a_pod_is_released_if_labels_or_name_are_not_right_any_more() {
    let pods = [pod(1, NEW), named("xweb-2", 2, NEW), of_other(pod(3, NEW)), orphan(of_other(pod(4, NEW)))];
    check(&case(set(3), pods.clone()), [&["web-1"], &[], &["xweb-2", "web-3"]]);
    let someone = || owner("apps/v1", "StatefulSet", "other", true);
    let foreign = pod(1, NEW).set(&["metadata", "ownerReferences"], json!([someone()]));
    check(&case(set(3), [foreign]), [&[], &[], &[]]);
    check(&case(set(3).terminating(), pods), [&["web-1"], &[], &[]]);
}

/// Upstream: `TestStatefulSetControllerDeletionTimestamp`.
#[test]
fn a_set_that_is_being_deleted_adopts_nothing() {
    let case = case(set(3).terminating(), [orphan(pod(1, NEW))]).revisions([orphan(revision(1, "1"))]);
    check(&case, [&[], &[], &[]]);
    assert!(plan_revision_claim(&case.observed()).is_settled());
}

/// Upstream: `TestAdoptOrphanRevisions`.
#[test]
fn a_revision_is_adopted_and_none_is_released() {
    let revisions = [revision(1, "old"), orphan(revision(2, "new")), of_other(revision(3, "other"))];
    let claim = plan_revision_claim(&case(set(3), []).revisions(revisions).observed());
    assert_eq!((names(&claim.owned), names(&claim.adopt)), (vec!["web-old"], vec!["web-new"]));
    assert_eq!(names(&claim.release), [""; 0]);
}

/// Upstream: `TestPodClaimIsStale`.
#[test]
fn a_claim_of_an_earlier_pod_of_this_name_is_stale() {
    let at = |template: &str, owner: Option<Value>| {
        owned(claim(3).set(&["metadata", "name"], format!("{template}-web-3")), &Vec::from_iter(owner))
    };
    let exists = |template: &str| at(template, None);
    let with_ref = |template: &str| at(template, Some(of_pod("web-3")));
    let stale = |template: &str| {
        let mut owner = of_pod("web-3");
        owner["uid"] = json!("stale");
        at(template, Some(owner))
    };
    let templates = json!([{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" } }]);
    let set = |scaled: &str| set(4).with("volumeClaimTemplates", templates.clone()).retention(scaled, "Retain");
    let there = PodIdentity::of(&pod(3, NEW).build::<Pod>());
    let missing = PodIdentity { uid: None, ..there.clone() };
    for (name, claims, pod, expected) in [
        ("all missing", vec![], &there, false),
        ("exists", vec![exists("b")], &there, false),
        ("all refs", vec![with_ref("a"), with_ref("b")], &there, false),
        ("stale & exists", vec![stale("a"), exists("b")], &there, true),
        ("stale & missing", vec![stale("a")], &there, true),
        ("withRef & stale", vec![with_ref("a"), stale("b")], &there, true),
        ("withRef, no UID", vec![with_ref("a")], &missing, true),
    ] {
        let case = |scaled: &str| case(set(scaled), []).claims(claims.clone()).observed();
        assert_eq!(case("Delete").stale_claim(pod).is_some(), expected, "{name}");
        assert!(case("Retain").stale_claim(pod).is_none(), "{name}");
    }
}

/// Upstream: `TestOrphanedPodsWithPVCDeletePolicy`: of three claims that of a pod which was released keeps its owners.
#[test]
fn claims_of_pods_too_many_get_their_owners_before_these_go() {
    for (when_scaled, when_deleted, expected) in [
        ("Retain", "Retain", None),
        ("Retain", "Delete", Some(["web", "web"])),
        ("Delete", "Retain", Some(["web-1", "web-0"])),
        ("Delete", "Delete", Some(["web-1", "web-0"])),
    ] {
        let set = set(0).with_claims().retention(when_scaled, when_deleted);
        let plan = case(set, [pod(0, NEW), pod(1, NEW)]).claims([claim(0), claim(1), claim(2)]).plan();
        let steps: Vec<String> = plan.condemned_claims.iter().map(ToString::to_string).collect();
        let step = |at: usize, owner: &str| format!("claims of web-{at} [too many] with data-web-{at} of {owner}");
        let expected = expected.map_or_else(Vec::new, |[first, second]| vec![step(1, first), step(0, second)]);
        assert_eq!(steps, expected, "{when_scaled} {when_deleted}");
    }
}

#[test]
fn a_claim_that_somebody_else_manages_is_told_of_and_ours_is_taken_back() {
    let other = || owner("example.com/v1", "Manager", "other", true);
    let set = || set(1).with_claims().retention("Retain", "Delete");
    case(set(), [pod(0, NEW)]).claims([owned(claim(0), &[other()])]).check("nothing (1 of 1 available, 1 updated)");
    case(set(), [pod(0, NEW)])
        .claims([owned(claim(0), &[of_set(), other()])])
        .check("update web-0 [owners of its claims] with data-web-0 of nobody (1 of 1 available, 1 updated)");
}
