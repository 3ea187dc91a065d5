//! The attempts that follow from one event after another.

use garbage_collector_operator::graph::dot::Drawing;
use garbage_collector_operator::graph::{Event, Graph, Stage};
use garbage_collector_operator::objects::{ObjectKind, PartialObject};
use shared::api::object::Uid;

use crate::fixtures::{Scene, thing, uid};

#[test]
fn a_deleted_owner_is_worth_an_attempt_on_each_dependent() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    assert_eq!(scene.observe(&owner), "");
    assert_eq!(scene.observe(&thing("Pod", "ns/a").owned_by(&owner)), "");
    assert_eq!(scene.observe(&thing("Pod", "ns/b").owned_by(&owner)), "");
    assert_eq!(scene.delete(&owner), "delete: a b");
    assert!(scene.graph.is_absent(&owner.identity()));
    scene.graph.forget_absent();
    assert!(!scene.graph.is_absent(&owner.identity()), "it is asked for again");
    assert_eq!(scene.delete(&owner), "", "a second time there is nothing left to do");
}

#[test]
fn an_owner_that_was_seen_to_go_explains_that_its_dependents_go() {
    let mut scene = Scene::default();
    let (owner, next) = (thing("ReplicaSet", "ns/rs"), thing("ReplicaSet", "ns/next"));
    scene.observe(&owner);
    let (a, b) = (thing("Pod", "ns/a").owned_by(&owner), thing("Pod", "ns/b").owned_by(&next));
    scene.observe(&a);
    scene.observe(&b);
    scene.delete(&owner);
    scene.absent(&next.identity());
    let saw = |scene: &Scene, name: &str| scene.graph.saw_owner_go(uid(name));
    assert_eq!((saw(&scene, "a"), saw(&scene, "b")), (true, false), "the other one was never there");
    scene.observe(&thing("Pod", "ns/late").owned_by(&owner));
    assert!(saw(&scene, "late"), "its owner went before it came");
    scene.observe(&thing("Pod", "ns/a").owned_by(&next).version(2));
    assert!(!saw(&scene, "a"), "its reference was changed");
}

/// Attempts that were due while nobody here worked are still made if they are still needed.
#[test]
fn work_that_starts_late_misses_nothing() {
    let mut scene = Scene::default();
    let gone = thing("ReplicaSet", "ns/gone");
    scene.observe(&gone);
    scene.observe(&thing("Pod", "ns/left-behind").owned_by(&gone));
    scene.delete(&gone);
    scene.observe(&thing("Pod", "ns/unseen-owner").owned_by(&thing("ReplicaSet", "ns/unseen")));
    let foreground = thing("ReplicaSet", "ns/foreground");
    scene.observe(&foreground);
    scene.observe(&thing("Pod", "ns/dependent").blocking(&foreground));
    scene.observe(&foreground.deleting(&["foregroundDeletion"]).version(2));
    scene.observe(&thing("ReplicaSet", "ns/orphaning").deleting(&["orphan"]));
    let live = thing("ReplicaSet", "ns/live");
    scene.observe(&live);
    scene.observe(&thing("Pod", "ns/well").owned_by(&live));
    scene.observe(&thing("Pod", "other/elsewhere").owned_by(&live));
    assert_eq!(
        scene.resume(),
        "delete: dependent elsewhere foreground gone unseen; orphan: orphaning; invalid: Pod other/elsewhere of live"
    );
    assert_eq!(scene.graph.dependents(gone.uid).count(), 1, "its dependent is told once it is known to be absent");
}

#[test]
fn an_owner_that_was_never_seen_is_looked_for() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    assert_eq!(scene.observe(&thing("Pod", "ns/a").owned_by(&owner)), "delete: rs");
    assert_eq!(scene.observe(&thing("Pod", "ns/b").owned_by(&owner)), "", "it is looked for already");
    assert_eq!(scene.nodes(), "(ReplicaSet ns/rs), Pod ns/a, Pod ns/b");
    assert_eq!(scene.observe(&owner), "");
    assert_eq!(scene.nodes(), "Pod ns/a, Pod ns/b, ReplicaSet ns/rs");
    assert_eq!(scene.graph.dependents(owner.uid).count(), 2);
}

/// On a standby nobody looks for it, and what refers to such owners may come and go for weeks.
#[test]
fn an_owner_that_was_never_seen_goes_with_the_last_that_refers_to_it() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    let (a, b) = (thing("Pod", "ns/a").owned_by(&owner), thing("Pod", "ns/b").owned_by(&owner));
    scene.observe(&a);
    scene.observe(&b);
    scene.delete(&a);
    assert_eq!(scene.nodes(), "(ReplicaSet ns/rs), Pod ns/b");
    scene.delete(&b);
    assert_eq!(scene.nodes(), "");
}

#[test]
fn an_owner_that_does_not_exist_leaves_its_dependents_to_be_attempted() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    scene.observe(&thing("Pod", "ns/a").owned_by(&owner));
    assert_eq!(scene.absent(&owner.identity()), "delete: a");
    assert_eq!(scene.nodes(), "Pod ns/a");
    assert!(scene.graph.is_absent(&owner.identity()));
}

#[test]
fn a_foreground_deletion_starts_once() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    scene.observe(&owner);
    scene.observe(&thing("Pod", "ns/a").blocking(&owner));
    let deleting = owner.clone().deleting(&["foregroundDeletion"]);
    assert_eq!(scene.observe(&deleting.clone().version(2)), "delete: a rs");
    assert_eq!(scene.observe(&deleting.clone().version(3)), "");
    assert_eq!(scene.delete(&thing("Pod", "ns/a")), "delete: rs", "a dependent that goes may let it go");
}

/// Upstream: `TestDoubleDeletionWithFinalizer`, `test/integration/garbagecollector`. Somebody else's finalizer keeps the
/// object when ours is gone, and each deletion in the foreground sets ours anew.
#[test]
fn a_foreground_deletion_that_is_asked_for_again_starts_again() {
    let mut scene = Scene::default();
    let pod = |version| thing("Pod", "ns/lucy").version(version);
    scene.observe(&pod(1));
    assert_eq!(scene.observe(&pod(2).deleting(&["foregroundDeletion"])), "delete: lucy");
    assert_eq!(scene.observe(&pod(3).deleting(&[])), "");
    assert_eq!(scene.observe(&pod(4).deleting(&["foregroundDeletion"])), "delete: lucy");
    assert_eq!(scene.graph.node(uid("lucy")).unwrap().stage, Stage::DeletingDependents);
}

#[test]
fn an_unblocked_owner_is_attempted() {
    let owner = thing("ReplicaSet", "ns/rs");
    let blocking = thing("Pod", "ns/a").blocking(&owner);
    for unblocked in [
        thing("Pod", "ns/a"),
        thing("Pod", "ns/a").owned_by(&owner),
        thing("Pod", "ns/a").reference(&owner.kind, "rs", owner.uid, Some(false)),
    ] {
        let mut scene = Scene::default();
        scene.observe(&owner);
        scene.observe(&blocking);
        assert_eq!(scene.observe(&unblocked.version(2)), "delete: rs");
        assert_eq!(scene.observe(&thing("Pod", "ns/a").blocking(&owner).version(3)), "");
    }
}

#[test]
fn orphaning_goes_before_a_foreground_deletion() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    scene.observe(&owner);
    scene.observe(&thing("Pod", "ns/a").owned_by(&owner));
    let both = owner.clone().deleting(&["orphan", "foregroundDeletion"]).version(2);
    assert_eq!(scene.observe(&both), "orphan: rs");
    assert_eq!(scene.observe(&both.clone().version(3)), "");
}

#[test]
fn an_object_first_seen_while_it_is_deleted_starts_at_once() {
    let mut scene = Scene::default();
    assert_eq!(scene.observe(&thing("ReplicaSet", "ns/a").deleting(&["orphan"])), "orphan: a");
    assert_eq!(scene.observe(&thing("ReplicaSet", "ns/b").deleting(&["foregroundDeletion"])), "delete: b");
    assert_eq!(scene.observe(&thing("ReplicaSet", "ns/c").deleting(&[])), "");
}

/// A dependent in one namespace, and the owner it names in another: both orders leave the good dependent alone.
#[test]
fn a_reference_across_namespaces_is_reported_and_attempted() {
    let owner = thing("ConfigMap", "b/owner");
    let (good, bad) = (thing("Secret", "b/good").owned_by(&owner), thing("Secret", "a/bad").owned_by(&owner));

    let mut scene = Scene::default();
    scene.observe(&owner);
    assert_eq!(scene.observe(&good), "");
    assert_eq!(scene.observe(&bad), "delete: bad; invalid: Secret a/bad of owner");

    let mut scene = Scene::default();
    assert_eq!(scene.observe(&bad), "delete: owner");
    assert_eq!(scene.observe(&good), "delete: good", "what the virtual owner is believed to be may be wrong");
    assert_eq!(scene.observe(&owner), "delete: bad; invalid: Secret a/bad of owner");
    assert_eq!(scene.nodes(), "ConfigMap b/owner, Secret a/bad, Secret b/good");
}

/// The bad dependent comes first, so that its claim is what is looked for, and does not exist.
#[test]
fn a_wrong_claim_does_not_make_the_real_owner_absent() {
    let owner = thing("ConfigMap", "b/owner");
    let pod = ObjectKind::shared("v1", "Pod");
    let bad = thing("Secret", "a/bad").reference(&pod, "invalid", owner.uid, None);
    let good = thing("Secret", "b/good").owned_by(&owner);
    let mut scene = Scene::default();
    scene.observe(&bad);
    scene.observe(&good);
    let claim = scene.graph.node(owner.uid).unwrap().identity.clone();
    assert_eq!(claim.to_string(), "Pod a/invalid");
    assert_eq!(scene.absent(&claim), "delete: bad; later: owner", "now the other claim is looked for");
    assert!(scene.graph.is_absent(&claim) && !scene.graph.is_absent(&owner.identity()));
    assert_eq!(scene.nodes(), "(ConfigMap b/owner), Secret a/bad, Secret b/good");
    assert_eq!(scene.observe(&owner), "");
    assert_eq!(scene.absent(&claim), "delete: bad", "the owner itself is real and stays");
    assert_eq!(scene.nodes(), "ConfigMap b/owner, Secret a/bad, Secret b/good");
}

#[test]
fn claims_are_tried_in_turn() {
    let (target, kind) = (uid("target"), ObjectKind::shared("v1", "Pod"));
    let dependent = |key: &str, name: &str| thing("Secret", key).reference(&kind, name, target, None);
    let mut scene = Scene::default();
    for (key, name) in [("a/x", "first"), ("a/y", "second"), ("b/z", "first")] {
        scene.observe(&dependent(key, name));
    }
    let mut claims = Vec::new();
    for _ in 0..4 {
        let claim = scene.graph.node(target).unwrap().identity.clone();
        scene.absent(&claim);
        claims.push(claim.to_string());
    }
    assert_eq!(claims, ["Pod a/first", "Pod a/second", "Pod b/first", "Pod a/first"]);
}

/// An owner that was looked for without a namespace is of a kind that has none; so are all other claims of its kind.
#[test]
fn claims_of_a_cluster_scoped_kind_are_of_no_namespace() {
    let (target, kind, other) = (uid("target"), ObjectKind::shared("v1", "Node"), ObjectKind::shared("v1", "Pod"));
    let mut scene = Scene::default();
    scene.observe(&thing("Node", "first-dependent").reference(&kind, "first", target, None));
    scene.observe(&thing("Secret", "a/x").reference(&kind, "second", target, None));
    scene.observe(&thing("Secret", "b/y").reference(&other, "third", target, None));
    let mut claims = Vec::new();
    for _ in 0..3 {
        let claim = scene.graph.node(target).unwrap().identity.clone();
        scene.absent(&claim);
        claims.push(claim.to_string());
    }
    assert_eq!(claims, ["Node first", "Node second", "Pod b/third"]);
}

#[test]
fn a_cluster_scoped_owner_is_one_for_all_namespaces() {
    let owner = thing("Node", "node");
    let mut scene = Scene::default();
    assert_eq!(scene.observe(&thing("Pod", "a/x").owned_by(&owner)), "delete: node");
    assert_eq!(scene.observe(&owner), "");
    assert_eq!(scene.observe(&thing("Pod", "b/y").owned_by(&owner)), "");
    assert_eq!(scene.delete(&owner), "delete: x y");
}

#[test]
fn a_cluster_scoped_dependent_of_a_virtual_owner_makes_others_look_again() {
    let owner = thing("ConfigMap", "ns/owner");
    let mut scene = Scene::default();
    assert_eq!(scene.observe(&thing("Node", "node").owned_by(&owner)), "delete: owner");
    assert_eq!(scene.observe(&thing("Pod", "ns/pod").owned_by(&owner)), "delete: pod");
}

/// Upstream, of `TestConflictingData`: "cluster-scoped bad child, namespaced good child, late observed parent" and
/// "namespaced good child, cluster-scoped bad child, missing parent".
#[test]
fn a_cluster_scoped_dependent_leaves_a_claim_of_no_namespace_behind() {
    let owner = thing("ConfigMap", "ns/owner");
    let (good, bad) = (thing("Pod", "ns/good").owned_by(&owner), thing("Node", "bad").owned_by(&owner));
    let mut scene = Scene::default();
    assert_eq!(scene.observe(&bad), "delete: owner");
    assert_eq!(scene.observe(&good), "delete: good");
    assert_eq!(scene.nodes(), "(ConfigMap owner), Node bad, Pod ns/good");
    assert_eq!(scene.observe(&owner), "delete: bad; invalid: Node bad of owner");
    assert_eq!(scene.nodes(), "ConfigMap ns/owner, Node bad, Pod ns/good");

    let mut scene = Scene::default();
    assert_eq!(scene.observe(&good), "delete: owner");
    assert_eq!(scene.observe(&bad), "delete: bad");
    assert_eq!(scene.absent(&owner.identity()), "delete: good; later: owner");
    assert_eq!(scene.nodes(), "(ConfigMap owner), Node bad, Pod ns/good");
    assert_eq!(scene.delete(&good), "");
    assert_eq!(scene.nodes(), "(ConfigMap owner), Node bad");
}

/// Upstream, of `TestConflictingData`: the children whose owner is observed in another API version than they name, be that
/// one served or not.
#[test]
fn an_owner_that_its_dependent_names_in_another_version_is_checked_and_stays() {
    let owner = thing("", "ns/owner").of_kind("apps/v1", "Deployment");
    let named = owner.clone().of_kind("extensions/v1beta1", "Deployment");
    let child = thing("Pod", "ns/child").owned_by(&named);
    let mut scene = Scene::default();
    assert_eq!(scene.observe(&child), "delete: owner");
    assert_eq!(scene.observe(&owner), "delete: child");
    assert_eq!(scene.nodes(), "Deployment ns/owner, Pod ns/child");

    let mut scene = Scene::default();
    assert_eq!(scene.observe(&owner), "");
    assert_eq!(scene.observe(&child), "delete: child");
    assert_eq!(scene.delete(&owner), "delete: child");
    let is_absent = [&owner, &named].map(|owner| scene.graph.is_absent(&owner.identity()));
    assert_eq!(is_absent, [true, false], "as which its dependent names it is still to be asked");
}

#[test]
fn a_list_drops_what_is_gone_and_nothing_of_other_kinds() {
    let owner = thing("ReplicaSet", "ns/rs");
    let (a, b) = (thing("Pod", "ns/a").owned_by(&owner), thing("Pod", "ns/b").owned_by(&owner));
    let mut scene = Scene::default();
    scene.observe(&owner);
    assert_eq!(scene.list("Pod", &[&a, &b], &[]), "");
    assert_eq!(scene.list("Pod", &[&b], &[]), "");
    assert_eq!(scene.nodes(), "Pod ns/b, ReplicaSet ns/rs");
    assert_eq!(scene.list("Pod", &[], &["ns/b"]), "", "what cannot be read is not gone");
    assert_eq!(scene.nodes(), "Pod ns/b, ReplicaSet ns/rs");
    assert_eq!(scene.list("ReplicaSet", &[], &[]), "delete: rs", "an owner that a list lacks is looked for");
}

/// A list may be of another time than what was seen of an owner; only the apiserver's own word makes it absent.
#[test]
fn an_owner_that_a_list_lacks_is_looked_for_before_anything_is_deleted() {
    let top = thing("Deployment", "ns/top").deleting(&["foregroundDeletion"]);
    let owner = thing("ReplicaSet", "ns/rs").blocking(&top);
    let pod = thing("Pod", "ns/a").owned_by(&owner);
    let doubted = || {
        let mut scene = Scene::default();
        scene.observe(&top);
        scene.observe(&owner);
        scene.observe(&pod);
        assert_eq!(scene.list("ReplicaSet", &[], &[]), "delete: rs");
        assert!(!scene.graph.is_absent(&owner.identity()));
        assert_eq!(scene.nodes(), "(ReplicaSet ns/rs), Deployment ns/top, Pod ns/a");
        assert!(scene.graph.dependents(top.uid).any(|dependent| dependent.blocks(top.uid)), "it is still waited for");
        scene
    };
    let mut scene = doubted();
    assert_eq!(scene.absent(&owner.identity()), "delete: a top");
    assert!(scene.graph.is_absent(&owner.identity()));

    let mut scene = doubted();
    assert_eq!(scene.observe(&owner), "", "it is there, and nothing has happened");
    assert_eq!(scene.nodes(), "Deployment ns/top, Pod ns/a, ReplicaSet ns/rs");
    assert_eq!(scene.graph.dependents(top.uid).count(), 1);
    assert_eq!(scene.delete(&owner), "delete: a top");

    // One that others name otherwise, too, holds its own owner back no longer than until it was asked for.
    let mut scene = doubted();
    let wrong = thing("Pod", "ns/b").reference(&owner.kind, "wrong", owner.uid, None);
    assert_eq!(scene.observe(&wrong), "delete: b");
    assert_eq!(scene.absent(&owner.identity()), "delete: a top; later: rs");
    assert_eq!(scene.graph.dependents(top.uid).count(), 0);
}

#[test]
fn a_dependent_that_a_list_lacks_is_looked_for_only_while_its_owner_waits() {
    let owner = thing("ReplicaSet", "ns/rs");
    let pod = thing("Pod", "ns/a").blocking(&owner);
    let mut scene = Scene::default();
    scene.observe(&owner);
    scene.observe(&pod);
    assert_eq!(scene.list("Pod", &[], &[]), "");
    assert_eq!(scene.nodes(), "ReplicaSet ns/rs");
    scene.observe(&pod);
    scene.observe(&owner.clone().deleting(&["foregroundDeletion"]).version(2));
    assert_eq!(scene.list("Pod", &[], &[]), "delete: a");
    assert_eq!(scene.absent(&pod.identity()), "delete: rs");
    assert_eq!(scene.nodes(), "ReplicaSet ns/rs");
}

#[test]
fn a_list_does_not_touch_owners_that_are_only_referred_to() {
    let owner = thing("ReplicaSet", "ns/rs");
    let mut scene = Scene::default();
    scene.observe(&thing("Pod", "ns/a").owned_by(&owner));
    assert_eq!(scene.list("ReplicaSet", &[], &[]), "");
    assert_eq!(scene.nodes(), "(ReplicaSet ns/rs), Pod ns/a");
}

/// When the preferred version changes, the new monitor takes the objects over from the old one.
#[test]
fn an_object_seen_in_another_version_is_the_same_object() {
    let versioned = |version: &str, key: &str| thing("", key).of_kind(&format!("example.com/{version}"), "Widget");
    let mut scene = Scene::default();
    scene.observe(&versioned("v1beta1", "ns/a"));
    scene.observe(&versioned("v1beta1", "ns/gone"));
    scene.observe(&thing("Pod", "ns/pod").owned_by(&versioned("v1beta1", "ns/gone")));
    let (kind, live) =
        (ObjectKind::shared("example.com/v1", "Widget"), [std::sync::Arc::new(versioned("v1", "ns/a").object())]);
    let event = Event::Listed(&kind, &live, &std::collections::BTreeSet::new());
    let effects = scene.graph.update(event);
    assert_eq!(scene.graph.node(uid("a")).unwrap().identity.object.kind, kind);
    // An owner that neither version lists is looked for in both: first in the one that is listed now, then in the one
    // that its dependent names.
    assert_eq!(effects.attempt_to_delete, [uid("gone")]);
    assert_eq!(scene.absent(&versioned("v1", "ns/gone").identity()), "later: gone");
    assert_eq!(scene.absent(&versioned("v1beta1", "ns/gone").identity()), "delete: pod");
    assert!(scene.graph.node(uid("gone")).is_none());
}

#[test]
fn a_state_that_comes_late_changes_nothing() {
    let owner = thing("ReplicaSet", "ns/rs");
    let mut scene = Scene::default();
    scene.observe(&owner);
    scene.observe(&thing("Pod", "ns/a").version(5));
    assert_eq!(scene.observe(&thing("Pod", "ns/a").owned_by(&owner).version(4)), "");
    assert_eq!(scene.delete(&owner), "");
}

#[test]
fn an_owner_is_called_what_its_dependent_calls_it() {
    let object: PartialObject = serde_json::from_value(serde_json::json!({ "metadata": {
        "name": "a", "namespace": "ns", "uid": uid("a").to_string(), "ownerReferences": [
            { "apiVersion": "v1", "kind": "Odd", "name": "odd", "uid": "Not a UUID" },
            { "apiVersion": "v1", "kind": "Odd", "name": "odd", "uid": uid("rs").to_string() },
        ],
    } }))
    .unwrap();
    let mut graph = Graph::default();
    graph.update(Event::Observed(&ObjectKind::shared("v1", "Pod"), &object));
    let node = graph.node(object.uid).unwrap();
    assert_eq!(node.names_of(Uid::parse("Not a UUID")), ["Not a UUID"]);
    assert_eq!(node.names_of(uid("rs")), [uid("rs").to_string()]);
    assert!(node.names_of(uid("other")).is_empty());
}

#[test]
fn a_node_is_small() {
    assert!(size_of::<garbage_collector_operator::graph::Node>() <= 120);
}

#[test]
fn a_drawing_shows_what_hangs_together() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    scene.observe(&thing("Pod", "ns/a").owned_by(&owner));
    scene.observe(&thing("Pod", "ns/alone"));
    let (a, rs) = (uid("a"), uid("rs"));
    let drawn = format!("\"{a}\" -> \"{rs}\";");
    let draw = |scene: &Scene, of: &[Uid]| {
        let mut drawing = Drawing::new(&scene.graph, of);
        std::iter::from_fn(|| drawing.piece(&scene.graph)).collect::<String>()
    };
    for of in [&[][..], &[rs]] {
        let text = draw(&scene, of);
        assert!(text.starts_with("strict digraph full {") && text.ends_with(";\n}\n"), "{text}");
        assert!(text.contains(&drawn) && text.contains("v1/ReplicaSet\\nns/rs\\nVirtual"), "{text}");
        assert!(!text.contains("alone"), "{text}");
    }
    assert!(draw(&scene, &[uid("alone")]).contains("ns/alone"));
}

#[test]
fn a_drawing_of_many_comes_in_small_pieces_and_shows_each_once() {
    let mut scene = Scene::default();
    let owner = thing("ReplicaSet", "ns/rs");
    for at in 0..1000 {
        scene.observe(&thing("Pod", &format!("ns/pod-{at}")).owned_by(&owner));
    }
    let mut drawing = Drawing::new(&scene.graph, &[]);
    let mut pieces = Vec::new();
    while let Some(piece) = drawing.piece(&scene.graph) {
        // An object that goes meanwhile is left out, and nothing else.
        if pieces.is_empty() {
            scene.delete(&thing("Pod", "ns/pod-7").owned_by(&owner));
        }
        pieces.push(piece);
    }
    assert!(pieces.iter().all(|piece| piece.len() < 64 * 1024));
    let text = pieces.concat();
    assert_eq!((text.matches("[label=").count(), text.matches(" -> ").count()), (1000, 999));
}
