//! What becomes of one migration: upstream's cases, and properties of any pages.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::api::resource::Resource;
use shared::testing::{NOW, ObjectBuilder, ago, object, uid};
use storage_version_migrator_operator::apply::Outcome;
use storage_version_migrator_operator::objects::progress::{PROGRESS, Progress};
use storage_version_migrator_operator::objects::{Migration, well_formed};
use storage_version_migrator_operator::observe::Observed;
use storage_version_migrator_operator::observe::live::{Page, Served, Target};
use storage_version_migrator_operator::plan::{Next, Plan, Then, plan};
use storage_version_migrator_operator::status::next_condition;

const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "Deployment", "deployments");

/// Of `deployments.apps`, with this version and these true conditions, so many seconds old.
fn migration(version: &str, conditions: &[&str], age: i64) -> ObjectBuilder {
    let conditions: Vec<Value> = conditions.iter().map(|type_| json!({ "type": type_, "status": "True" })).collect();
    object("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", "test")
        .namespace("")
        .set(&["metadata", "creationTimestamp"], ago(age).to_string())
        .set(&["spec", "resource"], json!({ "group": "apps", "resource": "deployments" }))
        .set(&["status"], json!({ "resourceVersion": version, "conditions": conditions }))
}

fn target(key: (&str, &str), version: &str) -> Target {
    Target { key: Key::new(key.0, key.1), uid: format!("uid-{}", key.1).into(), version: version.into() }
}

fn last(objects: Vec<Target>) -> Page {
    Page::Objects { objects, token: String::new(), left: None }
}

fn observed(migration: &ObjectBuilder, page: Option<Page>) -> Observed {
    let migration: Arc<Migration> = migration.build();
    Observed { migration, served: Some(Served::In(DEPLOYMENTS)), page }
}

fn text(observed: &Observed) -> String {
    plan(observed, NOW).to_string()
}

/// The keys that are rewritten, and what follows.
fn rewritten(observed: &Observed) -> (Vec<String>, Then) {
    let Next::Execute(Plan::Rewrite { resource, objects, then }) = plan(observed, NOW) else {
        unreachable!("{}", text(observed))
    };
    assert_eq!(resource, DEPLOYMENTS);
    (objects.iter().map(|target| target.key.to_string()).collect(), then)
}

/// Upstream: `TestSync`, "Successful migration". What is written then is in `sync.rs`.
#[test]
fn objects_up_to_the_version_are_rewritten() {
    let page = [(("ns1", "res1"), "90"), (("ns1", "res2"), "100"), (("ns2", "res3"), "101")];
    let page = page.map(|(key, version)| target(key, version)).to_vec();
    let (keys, then) = rewritten(&observed(&migration("100", &[], 0), Some(last(page))));
    assert_eq!((keys, then.is_last), (vec!["ns1/res1".to_owned(), "ns1/res2".to_owned()], true));
    assert_eq!(then.progress.objects, 3);
}

/// Upstream: `TestSync`, "SVM already succeeded"; `TestRVSync`, "SVM already succeeded" and "SVM already failed".
#[test]
fn a_finished_migration_does_nothing() {
    for condition in ["Succeeded", "Failed"] {
        assert_eq!(text(&observed(&migration("100", &[condition], 0), None)), "nothing (finished)");
    }
    assert_eq!(text(&observed(&migration("", &["Running"], 0), None)), "nothing (not started)");
}

/// Upstream: `TestSync`, "Resource not in GC": here it is discovery that does not have it.
#[test]
fn a_resource_that_is_not_served_fails_the_migration_after_a_minute() {
    let unserved = |age| Observed { served: Some(Served::Not), ..observed(&migration("100", &[], age), None) };
    assert_eq!(text(&unserved(59)), "wait (the apiserver does not serve the resource yet)");
    let message = "migration encountered unhandled error: unable to obtain GVR from discovery";
    assert_eq!(text(&unserved(120)), format!("fail ({message})"));
}

/// Upstream: `TestSync`, "Incomparable resource version for gc fails migration" (here that of the migration itself) and
/// "Incomparable resource version for object fails migration".
#[test]
fn a_version_that_is_no_number_fails_the_migration() {
    let check = |of_migration: &str, of_object: &str, bad: &str| {
        let page = last(vec![target(("ns1", "res1"), of_object)]);
        let error = format!("resource version is not well formed: {bad}");
        let expected = format!("fail (migration encountered unhandled error: {error})");
        assert_eq!(text(&observed(&migration(of_migration, &[], 0), Some(page))), expected);
    };
    check("abc", "90", "abc");
    check("100", "abc", "abc");
    check("100", "", "");
    check("100", "090", "090");
}

/// Upstream: `TestCompareResourceVersion`, `apimachinery/pkg/util/resourceversion`.
#[test]
fn only_numbers_as_the_apiserver_writes_them_are_versions() {
    let number = |text: &str| well_formed(text).map(|version| version.0);
    assert_eq!(["1", "100", "18446744073709551615"].map(number), [Some(1), Some(100), Some(u64::MAX)]);
    for bad in ["", "0", "01", "-1", "+1", "1a", " 1", "1.0"] {
        assert_eq!(number(bad), None, "{bad:?}");
    }
}

#[test]
fn a_migration_asks_for_the_resource_and_then_for_a_page() {
    let asked = Observed { served: None, ..observed(&migration("100", &[], 0), None) };
    assert_eq!(text(&asked), "discover the resource (objects of deployments.apps so far: 0)");
    let progress = Progress { uid: uid("test"), token: "next".to_owned(), objects: 1500 };
    let noted = serde_json::to_string(&progress).unwrap();
    let half_way = observed(&migration("100", &[], 0).annotation(PROGRESS, &noted), None);
    assert_eq!(text(&half_way), "list the next objects (objects of deployments.apps so far: 1500)");
    assert_eq!(half_way.migration.progress(), progress);
}

#[test]
fn progress_that_is_not_of_this_migration_counts_for_nothing() {
    let beginning = Progress::new(uid("test"));
    let copied = Progress { uid: uid("other"), token: "next".to_owned(), objects: 7 };
    for noted in [serde_json::to_string(&copied).unwrap(), "7".to_owned(), String::new()] {
        let migration: Arc<Migration> = migration("100", &[], 0).annotation(PROGRESS, &noted).build();
        assert_eq!(migration.progress(), beginning, "{noted}");
    }
}

#[test]
fn a_page_in_the_middle_is_followed_by_the_next_one() {
    let page = Page::Objects { objects: vec![target(("a", "b"), "7")], token: "next".to_owned(), left: Some(1999) };
    let observed_page = observed(&migration("100", &[], 0), Some(page));
    assert_eq!(text(&observed_page), "rewrite 1, then the next page (objects so far: 1, left: 1999)");
    let (_, then) = rewritten(&observed_page);
    assert_eq!(then.progress, Progress { uid: uid("test"), token: "next".to_owned(), objects: 1 });
    let expired = observed(&migration("100", &[], 0), Some(Page::Expired));
    assert_eq!(text(&expired), "begin again (the continue token has expired)");
    let refused = observed(&migration("100", &[], 0), Some(Page::Refused("no".to_owned())));
    assert_eq!(text(&refused), "fail (migration encountered unhandled error: no)");
}

#[test]
fn a_migration_ends_with_upstreams_conditions() {
    let written = |outcome: &Outcome, now: Timestamp| next_condition(outcome, now).map(|patch| json!(patch));
    let condition = |type_: &str, reason: &str, message: &str| {
        json!({ "status": { "conditions": [{
            "type": type_, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": NOW.to_string(),
        }] } })
    };
    let succeeded = condition("Succeeded", "StorageVersionMigrationSucceeded", "");
    assert_eq!(written(&Outcome::Succeeded, NOW), Some(succeeded));
    let failed = condition("Failed", "StorageVersionMigrationFailed", "why");
    assert_eq!(written(&Outcome::Failed("why".to_owned()), NOW), Some(failed));
    assert_eq!(written(&Outcome::GoesOn, NOW), None);
}

#[test]
fn a_person_hears_of_each_tenth() {
    let told = |count: u64, page: u64, is_counted: bool| {
        let begins = (0..count.div_ceil(page)).map(|number| number * page);
        let told = begins.filter(|before| {
            let after = count.min(before + page);
            let objects = (*before..after).map(|_| target(("a", "b"), "7")).collect();
            let token = if after == count { String::new() } else { "next".to_owned() };
            let page = Page::Objects { objects, token, left: is_counted.then(|| count - after) };
            let progress = Progress { objects: *before, ..Progress::new(uid("test")) };
            let noted = serde_json::to_string(&progress).unwrap();
            rewritten(&observed(&migration("100", &[], 0).annotation(PROGRESS, &noted), Some(page))).1.is_milestone
        });
        told.count()
    };
    assert_eq!(told(2_000, 50, true), 9);
    assert_eq!(told(20_000, 500, true), 9);
    assert_eq!(told(400, 500, true), 0);
    assert_eq!(told(300_000, 5_000, false), 2);
}

proptest! {
    /// What is rewritten is of this page and not newer than the migration; all of the page counts.
    #[test]
    fn a_page_is_rewritten_as_far_as_it_is_old(
        versions in proptest::collection::vec(1_u64..200, 0..20),
        newest in 1_u64..200,
        before in 0_u64..1000,
        token in "[a-z]{0,3}",
    ) {
        let named = |at: usize, version: u64| target(("ns", &format!("o{at}")), &version.to_string());
        let objects: Vec<Target> = versions.iter().enumerate().map(|(at, version)| named(at, *version)).collect();
        let noted = json!({ "uid": uid("test").to_string(), "continue": "x", "objects": before }).to_string();
        let migration = migration(&newest.to_string(), &[], 0).annotation(PROGRESS, &noted);
        let page = Page::Objects { objects: objects.clone(), token: token.clone(), left: None };
        let (keys, then) = rewritten(&observed(&migration, Some(page)));
        let old = objects.iter().zip(&versions).filter(|(_, version)| **version <= newest);
        prop_assert_eq!(keys, old.map(|(object, _)| object.key.to_string()).collect::<Vec<_>>());
        prop_assert_eq!(then.progress.objects, before + u64::try_from(versions.len()).unwrap());
        prop_assert_eq!(then.is_last, token.is_empty());
    }
}
