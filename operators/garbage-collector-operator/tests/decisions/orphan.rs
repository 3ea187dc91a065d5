//! The decision about an owner that is deleted without its dependents.

use garbage_collector_operator::plan::orphan::plan;
use shared::api::object::Uid;

use crate::fixtures::{Scene, Thing, thing, uid};

#[track_caller]
fn check(seen: &[&Thing], owner: &str, expected: &str) {
    let mut scene = Scene::default();
    for thing in seen {
        scene.observe(thing);
    }
    let plan = plan(&scene.graph, uid(owner)).map_or("-".to_owned(), |plan| plan.to_string());
    assert_eq!(plan, expected);
}

#[test]
fn dependents_are_released_before_their_owner_goes() {
    let owner = thing("ReplicaSet", "ns/web").deleting(&["orphan"]);
    let other = thing("ReplicaSet", "ns/other");
    let pods = ["ns/a", "ns/b"].map(|key| thing("Pod", key).owned_by(&owner));
    let foreign = thing("Pod", "ns/c").owned_by(&other);
    let last = "remove finalizer orphan (is deleted without its dependents)";
    check(&[&owner], "web", &format!("ReplicaSet ns/web: {last}"));
    let seen = [&owner, &other, &foreign, &pods[0], &pods[1]];
    check(&seen, "web", &format!("ReplicaSet ns/web: orphan 2 dependents, {last}"));
    check(&seen, "unknown", "-");
}

#[test]
fn a_dependent_is_told_apart_by_the_references_it_loses() {
    let mut scene = Scene::default();
    let (owner, other) = (thing("ReplicaSet", "ns/web").deleting(&["orphan"]), thing("ReplicaSet", "ns/other"));
    let pod = thing("Pod", "ns/a").owned_by(&other).owned_by(&owner);
    let odd = thing("Pod", "ns/b").reference(&owner.kind, "web", Uid::parse("Not a UUID"), None);
    for thing in [&owner, &other, &pod, &odd] {
        scene.observe(thing);
    }
    let releases = plan(&scene.graph, uid("web")).unwrap().releases;
    let released: Vec<_> = releases.iter().map(|release| (release.dependent.to_string(), &release.owners)).collect();
    assert_eq!(released, [("Pod ns/a".to_owned(), &vec![uid("web").to_string()])]);
}
