use serde_json::json;
use shared::api::object::Key;
use shared::testing::{ObjectBuilder, object, store, uid};

use super::*;

fn deployment(name: &str) -> ObjectBuilder {
    object("apps/v1", "Deployment", name)
        .set(&["spec", "selector"], json!({ "matchLabels": { "app": name } }))
        .set(&["spec", "strategy", "type"], "Recreate")
}

fn replica_set(name: &str) -> ObjectBuilder {
    object("apps/v1", "ReplicaSet", name).set(&["spec"], json!({})).label("app", "web")
}

/// A ReplicaSet of `web`.
fn owned(name: &str) -> ObjectBuilder {
    owned_by(name, "web")
}

fn owned_by(name: &str, owner: &str) -> ObjectBuilder {
    replica_set(name).owned_by::<Deployment>(&deployment(owner).build::<Deployment>())
}

fn owner_reference(kind: &str, uid_of: &str) -> serde_json::Value {
    json!([{ "apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": uid(uid_of), "controller": true }])
}

/// Two Deployments, `web` and `db`.
fn caches() -> Caches {
    let (caches, _) = Caches::new();
    store(&caches.deployments, &deployment("web").build());
    store(&caches.deployments, &deployment("db").build());
    caches
}

#[track_caller]
fn check(effects: Vec<Effect>, expected: &str) {
    let name = |effect: Effect| {
        let Effect::Enqueue(key, _) = effect else { panic!("{effect:?}") };
        key.name().to_owned()
    };
    let names: Vec<String> = effects.into_iter().map(name).collect();
    assert_eq!(names.join(" "), expected);
}

#[track_caller]
fn check_added(new: &ObjectBuilder, expected: &str) {
    check(caches().replica_set_changed(Change::Added(&new.clone().build())), expected);
}

#[track_caller]
fn check_updated(old: &ObjectBuilder, new: &ObjectBuilder, expected: &str) {
    let (old, new) = (old.clone().build(), new.clone().set(&["metadata", "resourceVersion"], "2").build());
    check(caches().replica_set_changed(Change::Updated { old: &old, new: &new }), expected);
}

/// Upstream: `TestAddReplicaSet`.
#[test]
fn a_replica_set_wakes_its_own_deployment() {
    check_added(&owned("web-1"), "web");
    check_added(&owned("web-1").label("app", "db"), "web");
    // Another kind, or another object of that name.
    let of = |reference| replica_set("web-1").set(&["metadata", "ownerReferences"], reference);
    check_added(&of(owner_reference("Other", "web")), "");
    check_added(&of(owner_reference("Deployment", "db")), "");
}

/// Upstream: `TestAddReplicaSetOrphan`, `TestGetDeploymentsForReplicaSet`.
#[test]
fn an_orphan_wakes_those_that_select_it() {
    check_added(&replica_set("x"), "web");
    check_added(&replica_set("x").label("app", "db"), "db");
    check_added(&replica_set("x").label("app", "none"), "");
    check_added(&object("apps/v1", "ReplicaSet", "x").set(&["spec"], json!({})), "");
    check_added(&replica_set("x").namespace("other"), "");
    let greedy = caches();
    store(&greedy.deployments, &deployment("all").set(&["spec", "selector"], json!({})).build());
    let odd = json!({ "matchExpressions": [{ "key": "app", "operator": "Odd" }] });
    store(&greedy.deployments, &deployment("odd").set(&["spec", "selector"], odd).build());
    let both = json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] });
    store(&greedy.deployments, &deployment("both").set(&["spec", "selector"], both).build());
    check(greedy.replica_set_changed(Change::Added(&replica_set("x").build())), "both web");
}

/// Upstream: `TestUpdateReplicaSet`, `TestUpdateReplicaSetOrphanWithNewLabels`,
/// `TestUpdateReplicaSetChangeControllerRef`, `TestUpdateReplicaSetRelease`.
#[test]
fn an_update_wakes_the_owner_before_and_the_owner_now() {
    check_updated(&owned("web-1"), &owned("web-1"), "web");
    check_updated(&owned("web-1"), &owned_by("web-1", "db"), "web db");
    check_updated(&owned("web-1").label("app", "db"), &replica_set("web-1").label("app", "db"), "web db");
    let orphan = replica_set("x");
    check_updated(&orphan, &orphan, "");
    check_updated(&orphan.clone().label("app", "none"), &orphan, "web");
    check_updated(&orphan, &owned("x"), "web");
    let same = owned("web-1").build();
    check(caches().replica_set_changed(Change::Updated { old: &same, new: &same }), "");
}

/// Upstream: `TestDeleteReplicaSet`, `TestDeleteReplicaSetOrphan`.
#[test]
fn an_end_wakes_the_owner_and_nobody_else() {
    let deleted = |last: ObjectBuilder| caches().replica_set_changed(Change::Deleted(&last.build()));
    check(deleted(owned("web-1")), "web");
    check(deleted(replica_set("x")), "");
    check_added(&owned("web-1").terminating(), "web");
    check_added(&replica_set("x").terminating(), "");
}

#[test]
fn an_edit_goes_first_and_a_status_does_not() {
    let (web, key) = (|| deployment("web"), Key::new("default", "web"));
    let updated = |new: ObjectBuilder| {
        let new = new.set(&["metadata", "resourceVersion"], "2").build();
        deployment_changed(Change::Updated { old: &web().build(), new: &new })
    };
    let enqueued = |cause| vec![Effect::Enqueue(key.clone(), cause)];
    assert_eq!(updated(web()), enqueued(Cause::Event));
    assert_eq!(updated(web().set(&["metadata", "generation"], 2)), enqueued(Cause::Edit));
    assert_eq!(updated(web().set(&["metadata", "annotations"], json!({ "a": "b" }))), enqueued(Cause::Edit));
    assert_eq!(deployment_changed(Change::Added(&web().build())), enqueued(Cause::Edit));
    let forgotten = vec![Effect::Forget(key.clone(), uid("web")), Effect::Enqueue(key.clone(), Cause::Event)];
    assert_eq!(deployment_changed(Change::Deleted(&web().build())), forgotten);
}
