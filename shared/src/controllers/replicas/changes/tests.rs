use super::*;
use crate::controllers::replicas::fixtures::{Set, selecting, set};
use crate::testing::{ObjectBuilder, pod, store};
use serde_json::json;

/// Caches of these owners.
fn caches(owners: &[&Arc<Set>]) -> Caches<Set> {
    let (caches, _) = Caches::new();
    for owner in owners {
        store(&caches.owners, owner);
    }
    caches
}

/// `web` selects `app=web` and has pods; `db` selects `app=db`.
fn web_and_db() -> (Caches<Set>, Arc<Set>, Arc<Set>) {
    let (web, db) = (selecting("web", "web").build(), selecting("db", "db").build());
    (caches(&[&web, &db]), web, db)
}

fn text(effects: &[Effect]) -> String {
    let text = |effect: &Effect| match effect {
        Effect::Enqueue(key, Cause::Event) => format!("sync {}", key.name()),
        Effect::Enqueue(key, Cause::Edit) => format!("sync edited {}", key.name()),
        Effect::EnqueueAfter(key, delay, _) => format!("sync {} after {delay:?}", key.name()),
        Effect::CreationObserved(key) => format!("{} sees a creation", key.name()),
        Effect::DeletionObserved(key, _) => format!("{} sees a deletion", key.name()),
        Effect::Forget(key, _) => format!("forget {}", key.name()),
    };
    effects.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check_added(caches: &Caches<Set>, pod: &ObjectBuilder, expected: &str) {
    assert_eq!(text(&caches.pod_changed(Change::Added(&pod.build()))), expected);
}

#[track_caller]
fn check_deleted(caches: &Caches<Set>, pod: &ObjectBuilder, expected: &str) {
    assert_eq!(text(&caches.pod_changed(Change::Deleted(&pod.build()))), expected);
}

#[track_caller]
fn check_updated(caches: &Caches<Set>, old: &ObjectBuilder, new: &ObjectBuilder, expected: &str) {
    let new = new.clone().set(&["metadata", "resourceVersion"], "2");
    assert_eq!(text(&caches.pod_changed(Change::Updated { old: &old.build(), new: &new.build() })), expected);
}

#[test]
fn a_pods_owner_sees_its_creation() {
    let (caches, web, _) = web_and_db();
    check_added(&caches, &pod("a").owned_by(&*web), "web sees a creation, sync web");
    // A selector that matches the pod makes no difference.
    check_added(&caches, &pod("a").owned_by(&*web).label("app", "db"), "web sees a creation, sync web");
}

#[test]
fn an_owner_is_found_by_kind_name_and_uid() {
    let (caches, web, _) = web_and_db();
    let reference = |field: &str, value: &str| {
        let mut references = pod("a").owned_by(&*web).json()["metadata"]["ownerReferences"].clone();
        references[0][field] = value.into();
        pod("a").label("app", "web").set(&["metadata", "ownerReferences"], references)
    };
    check_added(&caches, &reference("kind", "Job"), "");
    check_added(&caches, &reference("name", "db"), "");
    check_added(&caches, &reference("uid", "11111111-2222-4333-8444-555555555555"), "");
    check_added(&caches, &reference("apiVersion", "apps/v9"), "web sees a creation, sync web");
    check_added(&caches, &pod("a").owned_by(&*web).namespace("elsewhere"), "");
}

/// Upstream: `TestPodControllerLookup`.
#[test]
fn an_orphan_wakes_those_that_select_it_and_is_nobodys_creation() {
    let (caches, ..) = web_and_db();
    check_added(&caches, &pod("a").label("app", "web"), "sync web");
    check_added(&caches, &pod("a").label("app", "web").namespace("elsewhere"), "");
    check_added(&caches, &pod("a").label("app", "other"), "");
    check_added(&caches, &pod("a"), "");
    check_deleted(&caches, &pod("a").label("app", "web"), "");
}

#[test]
fn an_orphan_wakes_all_that_select_it_but_none_that_selects_everything_or_nothing() {
    let selectors = [
        ("all", json!({})),
        ("broken", json!({ "matchExpressions": [{ "key": "app", "operator": "Like", "values": ["web"] }] })),
        ("none", json!(null)),
        ("not-db", json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["db"] }] })),
        ("web", json!({ "matchLabels": { "app": "web" } })),
    ];
    let owners = selectors.map(|(name, selector)| set(name, selector).build());
    let caches = caches(&owners.each_ref());
    check_added(&caches, &pod("a").label("app", "web"), "sync not-db, sync web");
    check_added(&caches, &pod("a"), "");
}

/// Upstream: `TestDeletionTimestamp`.
#[test]
fn a_terminating_pod_counts_as_deleted() {
    let (caches, web, _) = web_and_db();
    let running = pod("a").owned_by(&*web);
    let terminating = running.clone().terminating();
    check_added(&caches, &terminating, "web sees a deletion, sync web");
    check_updated(&caches, &running, &terminating, "web sees a deletion, sync web");
    check_updated(&caches, &terminating, &terminating.clone().phase("Failed"), "web sees a deletion, sync web");
    check_deleted(&caches, &terminating, "web sees a deletion, sync web");
}

#[test]
fn a_terminating_pod_that_was_relabelled_also_concerns_its_former_owner() {
    let (caches, web, db) = web_and_db();
    let before = pod("a").label("app", "web").owned_by(&*web);
    let after = pod("a").label("app", "db").owned_by(&*db).terminating();
    check_updated(&caches, &before, &after, "db sees a deletion, sync db, web sees a deletion, sync web");
}

/// Upstream: `TestUpdatePods`.
#[test]
fn a_changed_pod_wakes_its_owner_or_those_that_may_adopt_it() {
    let (caches, web, db) = web_and_db();
    let (web_pod, db_pod) = (pod("a").label("app", "web"), pod("a").label("app", "db"));
    check_updated(&caches, &web_pod.clone().owned_by(&*web), &db_pod.clone().owned_by(&*web), "sync web");
    check_updated(&caches, &db_pod.clone().owned_by(&*db), &db_pod, "sync db, sync db");
    check_updated(&caches, &db_pod.clone().owned_by(&*web), &db_pod, "sync web, sync db");
    check_updated(&caches, &web_pod.clone().owned_by(&*db), &db_pod.clone().owned_by(&*db), "sync db");
    check_updated(&caches, &web_pod, &db_pod, "sync db");
    check_updated(&caches, &web_pod, &web_pod.clone().phase("Failed"), "");
    check_updated(&caches, &web_pod, &web_pod.clone().owned_by(&*web), "sync web");
}

#[test]
fn a_change_that_nobody_decides_on_wakes_nobody() {
    let (caches, web, _) = web_and_db();
    let before = pod("a").owned_by(&*web);
    check_updated(&caches, &before, &before.clone().annotation("a", "b").set(&["status", "podIP"], "10.0.0.1"), "");
    check_updated(&caches, &before, &before.clone().deletion_cost("1"), "sync web");
    check_updated(&caches, &before, &before.clone().restarts(1), "sync web");
}

#[test]
fn a_pod_that_becomes_ready_is_looked_at_again_when_it_may_be_available() {
    let web = selecting("web", "web").set(&["spec", "minReadySeconds"], 5).build();
    let caches = caches(&[&web]);
    let unready = pod("a").owned_by(&*web);
    check_updated(&caches, &unready, &unready.clone().ready(), "sync web, sync web after 5s");
    let ready = unready.clone().ready();
    check_updated(&caches, &ready, &ready.clone().restarts(1), "sync web");
}

/// Upstream: `TestExpectationsOnRecreate` and `TestDeleteFinalStateUnknown`.
#[test]
fn an_owner_that_is_gone_is_forgotten() {
    let (_, web, _) = web_and_db();
    assert_eq!(text(&owner_changed(Change::Added(&web))), "sync edited web");
    assert_eq!(text(&owner_changed(Change::Deleted(&web))), "forget web, sync web");
}

#[test]
fn an_edit_of_the_spec_overtakes_and_a_status_does_not() {
    let web = selecting("web", "web");
    let change =
        |new: ObjectBuilder| text(&owner_changed::<Set>(Change::Updated { old: &web.build(), new: &new.build() }));
    assert_eq!(change(web.clone().generation(2)), "sync edited web");
    assert_eq!(change(web.clone().set(&["status", "replicas"], 1)), "sync web");
}
