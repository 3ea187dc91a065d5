//! The decision of one attempt, by the objects that were read.

use std::sync::Arc;

use garbage_collector_operator::graph::{Event, Graph, Stage};
use garbage_collector_operator::objects::{Coordinates, LiveMeta, LiveObject, OwnerReference};
use garbage_collector_operator::observe::{Dependents, Learned, Live, Observed, Owner, Owners, Present};
use garbage_collector_operator::plan::{Action, Conflict, Plan, judge_conflict, plan};
use serde_json::json;
use shared::api::resource::PODS;
use shared::working::decisions::stage;

use crate::fixtures::{Thing, thing, uid};

/// A pod and its owners, which are named by letters: Solid, Waiting, Dangling, Elsewhere.
struct Case {
    observed: Observed,
}

fn pod(owners: &str) -> Case {
    let pod = owners.chars().enumerate().fold(thing("Pod", "ns/pod"), |pod, (at, _)| {
        let owner = thing("ReplicaSet", &format!("ns/owner-{at}"));
        pod.owned_by(&owner)
    });
    let references: Vec<_> = pod
        .references()
        .map(|reference| {
            let owner = &reference.owner;
            let (kind, uid) = (&owner.kind, owner.uid.to_string());
            json!({ "apiVersion": kind.api_version, "kind": kind.kind, "name": &*owner.name, "uid": uid,
                    "blockOwnerDeletion": true, "unknown": 1 })
        })
        .collect();
    let live = json!({ "metadata": {
        "uid": pod.uid.to_string(), "resourceVersion": "42", "ownerReferences": references } });
    let states = owners.chars().map(|letter| match letter {
        'S' => Owner::Solid,
        'W' => Owner::Waiting,
        'D' => Owner::Dangling,
        'E' => Owner::Elsewhere,
        other => panic!("{other}"),
    });
    let owners: Vec<(Arc<OwnerReference>, Owner)> =
        pod.references().cloned().map(OwnerReference::shared).zip(states).collect();
    let live: LiveObject = serde_json::from_value(live).unwrap();
    let present = Present { resource: PODS, live, owners: Owners::Known(owners) };
    Case {
        observed: Observed {
            identity: pod.identity(),
            stage: Stage::Live,
            dependents: Dependents::default(),
            saw_owner_go: false,
            live: Live::Present(Box::new(present)),
            learned: Learned::default(),
        },
    }
}

impl Case {
    fn stage(mut self, stage: Stage) -> Self {
        self.observed.stage = stage;
        self
    }

    fn live(mut self, live: Live) -> Self {
        self.observed.live = live;
        self
    }

    fn owners(mut self, owners: Owners) -> Self {
        let Live::Present(present) = &mut self.observed.live else { panic!("it is not there") };
        present.owners = owners;
        self
    }

    fn finalizer(mut self, finalizer: &str) -> Self {
        let Live::Present(present) = &mut self.observed.live else { panic!("it is not there") };
        present.live.metadata.finalizers.push(finalizer.to_owned());
        self
    }

    /// Dependents as a graph gives them.
    fn dependents(mut self, dependents: &[Thing]) -> Self {
        let mut graph = Graph::default();
        for dependent in dependents {
            graph.update(Event::Observed(&dependent.kind, &dependent.object()));
        }
        self.observed.dependents = Dependents::of(uid("pod"), graph.dependents(uid("pod")));
        self
    }

    #[track_caller]
    fn check(self, expected: &str) -> Plan {
        let plan = plan(&self.observed);
        assert_eq!(plan.to_string(), format!("Pod ns/pod: {expected}"));
        plan
    }
}

#[test]
fn an_object_is_deleted_when_its_last_owner_is_gone() {
    pod("").check("nothing (has no owners)");
    pod("S").check("nothing (is owned by ReplicaSet owner-0)");
    pod("SS").check("nothing (is owned by ReplicaSet owner-0, ReplicaSet owner-1)");
    pod("SSSSS").check("nothing (is owned by ReplicaSet owner-0, ReplicaSet owner-1, ReplicaSet owner-2 and 2 more)");
    pod("D").check("delete Background (all its owners are gone: ReplicaSet owner-0 is absent)");
    let gone = "all its owners are gone: ReplicaSet owner-0 is absent, ReplicaSet owner-1 is in another namespace";
    pod("DE").check(&format!("delete Background ({gone})"));
}

#[test]
fn a_deletion_is_explained_by_an_owner_that_was_seen_to_go_or_waits() {
    let is_explained = |case: Case| {
        let Action::Delete(delete) = plan(&case.observed).action else { panic!("it stays") };
        delete.is_explained
    };
    let mut seen = pod("D");
    seen.observed.saw_owner_go = true;
    assert_eq!([pod("D"), pod("E"), pod("DW"), seen].map(is_explained), [false, false, true, true]);
}

#[test]
fn owners_that_are_gone_or_wait_are_dropped_while_another_stays() {
    let gone = "ReplicaSet owner-1 is absent, ReplicaSet owner-2 is being deleted";
    let plan = pod("SDW").check(&format!("drop owners ({gone}; ReplicaSet owner-0 stays)"));
    let Action::Patch(_, patch) = plan.action else { panic!("{plan}") };
    let (first, second) = (uid("owner-1").to_string(), uid("owner-2").to_string());
    let dropped = json!([{ "$patch": "delete", "uid": first }, { "$patch": "delete", "uid": second }]);
    assert_eq!(patch.strategic["metadata"]["ownerReferences"], dropped);
    assert_eq!(patch.merge["metadata"]["ownerReferences"][0]["name"], "owner-0");
    assert_eq!(patch.merge["metadata"]["ownerReferences"][0]["unknown"], 1);
    assert_eq!(patch.resource_version, "42");
}

#[test]
fn what_was_asked_for_by_finalizer_stays() {
    pod("D").finalizer("orphan").check("delete Orphan (all its owners are gone: ReplicaSet owner-0 is absent)");
    pod("D")
        .finalizer("foregroundDeletion")
        .check("delete Foreground (all its owners are gone: ReplicaSet owner-0 is absent)");
    pod("D")
        .finalizer("foregroundDeletion")
        .finalizer("orphan")
        .check("delete Orphan (all its owners are gone: ReplicaSet owner-0 is absent)");
}

#[test]
fn a_waiting_owner_deletes_its_dependents_with_theirs() {
    let me = thing("Pod", "ns/pod");
    pod("W").check("delete Background (its owners wait for it: ReplicaSet owner-0)");
    pod("W")
        .dependents(&[thing("Pod", "ns/a").owned_by(&me)])
        .check("delete Foreground (its owners wait for it: ReplicaSet owner-0)");
    pod("D")
        .dependents(&[thing("Pod", "ns/a").owned_by(&me)])
        .check("delete Background (all its owners are gone: ReplicaSet owner-0 is absent)");
}

#[test]
fn a_circle_of_waiting_objects_is_broken() {
    let me = thing("Pod", "ns/pod");
    let waiting = thing("Pod", "ns/a").blocking(&me).deleting(&["foregroundDeletion"]);
    let plan = pod("W")
        .dependents(&[waiting])
        .check("unblock owners, delete Foreground (its owners wait for it: ReplicaSet owner-0)");
    let Action::Delete(delete) = plan.action else { panic!("{plan}") };
    let unblock = delete.unblock.unwrap();
    assert_eq!(unblock.strategic["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], false);
}

#[test]
fn a_foreground_deletion_waits_for_what_blocks_it_and_nothing_else() {
    let me = thing("Pod", "ns/pod");
    let case = || pod("S").stage(Stage::DeletingDependents);
    let gone = "remove finalizer foregroundDeletion (no dependent blocks its deletion)";
    case().check(gone);
    case().dependents(&[thing("Pod", "ns/a").owned_by(&me)]).check(gone);
    case().dependents(&[thing("Pod", "ns/a").reference(&me.kind, "pod", me.uid, Some(false))]).check(gone);
    let blocking = thing("Pod", "ns/a").blocking(&me);
    let plan = case().dependents(&[blocking, thing("Pod", "ns/b").owned_by(&me)]);
    let plan = plan.check("attempt 1 dependents (waits for dependents that block its deletion: Pod ns/a)");
    assert_eq!(plan.action, Action::Attempt(vec![uid("a")]));
    let deleting = thing("Pod", "ns/a").blocking(&me).deleting(&["foregroundDeletion"]);
    case()
        .dependents(&[deleting])
        .check("attempt 0 dependents (waits for dependents that block its deletion: Pod ns/a)");
}

#[test]
fn an_open_question_leaves_the_object_alone() {
    pod("").live(Live::Unserved).check("nothing (its kind is not served), retry when other kinds are served");
    pod("").live(Live::Unread("no".to_owned())).check("nothing (no), retry");
    pod("D").owners(Owners::Unread("no".to_owned())).check("nothing (no), retry");
    let reference = pod("D").observed;
    let Live::Present(present) = reference.live else { panic!("it is there") };
    let Owners::Known(owners) = present.owners else { panic!("they are known") };
    let owner = Arc::clone(&owners[0].0);
    let kind = Arc::clone(&owner.owner.kind);
    let unnamed =
        OwnerReference { owner: Coordinates { name: Arc::from(".."), ..owner.owner.clone() }, ..(*owner).clone() };
    pod("D")
        .owners(Owners::InvalidName(unnamed.shared()))
        .check("nothing (no owner can have this name: ReplicaSet \"..\")");
    pod("").live(Live::InvalidName).check("nothing (no object can have its name)");
    pod("").live(Live::InvalidName).stage(Stage::Virtual).check("nothing (no object can have its name)");
    pod("D")
        .owners(Owners::Unserved(kind))
        .check("nothing (v1 ReplicaSet of an owner is not served), retry when other kinds are served");
    pod("D")
        .owners(Owners::Namespaced(owner))
        .check("nothing (cluster-scoped objects cannot refer to namespaced owners: ReplicaSet owner-0)");
    pod("").live(Live::NoNamespace).check("nothing (its namespace is not known)");
    let throttled = "nothing (many reads are under way), retry in its turn";
    pod("").live(Live::Throttled).stage(Stage::Virtual).check(throttled);
    pod("D")
        .owners(Owners::Throttled { read: 10, of: 9000 })
        .check("nothing (10 of its 9000 owners were read), retry in its turn");
}

#[test]
fn what_no_monitor_has_seen_is_asked_for() {
    let no = || Some("no".to_owned());
    let unseen = "nothing (no monitor has seen it; a sync reads it";
    pod("").live(Live::Unseen { failing: None }).check(&format!("{unseen})"));
    pod("").live(Live::Unseen { failing: no() }).check(&format!("{unseen}; its kind cannot be followed: no)"));
    let Live::Present(present) = pod("D").observed.live else { panic!("it is there") };
    let Owners::Known(owners) = present.owners else { panic!("they are known") };
    let owner = |failing| Owners::Unseen { reference: Arc::clone(&owners[0].0), failing };
    let unseen = "nothing (no monitor has seen its owner ReplicaSet owner-0; a sync reads it";
    pod("D").owners(owner(None)).check(&format!("{unseen})"));
    pod("D").owners(owner(no())).check(&format!("{unseen}; that kind cannot be followed: no)"));
}

/// A case and its fields, as programs read them.
#[test]
fn a_reason_names_owners_and_dependents() {
    let reason = |case: Case| stage(&plan(&case.observed)).reason;
    let named = |names: &[&str]| json!({ "names": names, "more": 0 });
    assert_eq!(reason(pod("")), json!("noOwners"));
    assert_eq!(reason(pod("S")), json!({ "owned": { "owners": named(&["ReplicaSet owner-0"]) } }));
    let gone = json!({ "absent": named(&["ReplicaSet owner-0"]), "elsewhere": named(&["ReplicaSet owner-1"]) });
    assert_eq!(reason(pod("DE")), json!({ "allOwnersGone": gone }));
    let blocking = thing("Pod", "ns/a").blocking(&thing("Pod", "ns/pod"));
    let waits = pod("S").stage(Stage::DeletingDependents).dependents(&[blocking]);
    assert_eq!(reason(waits), json!({ "waitsForDependents": { "dependents": named(&["Pod ns/a"]) } }));
}

#[test]
fn what_is_absent_is_forgotten_and_what_is_being_deleted_is_left() {
    pod("").live(Live::Absent).check("forget (does not exist)");
    pod("").live(Live::Absent).stage(Stage::Virtual).check("forget (does not exist)");
    pod("").live(Live::NotAsked).stage(Stage::BeingDeleted).check("nothing (is being deleted)");
}

#[test]
fn a_virtual_object_is_looked_at_until_a_monitor_has_seen_it() {
    pod("").stage(Stage::Virtual).check("nothing (has no owners), retry");
    pod("D")
        .stage(Stage::Virtual)
        .check("delete Background (all its owners are gone: ReplicaSet owner-0 is absent), retry");
}

#[test]
fn a_delete_names_what_was_read() {
    let plan = pod("D").check("delete Background (all its owners are gone: ReplicaSet owner-0 is absent)");
    let Action::Delete(delete) = plan.action else { panic!("{plan}") };
    assert_eq!((delete.live.uid.as_str(), delete.live.resource_version.as_str()), (&*uid("pod").to_string(), "42"));
}

/// Upstream: `TestAttemptToDeleteItem` and the conflict cases of `TestConflictingData`: deletes with and without a
/// resourceVersion.
#[test]
fn a_conflict_is_passed_over_only_if_the_owners_are_the_same() {
    let check = |now: &LiveMeta, expected: Conflict| {
        let owners = vec![json!({ "uid": "a", "unknown": 1 })];
        let planned = LiveMeta {
            uid: "u".into(),
            resource_version: "42".into(),
            owner_references: owners,
            ..LiveMeta::default()
        };
        assert_eq!(judge_conflict(&planned, now), expected, "{now:?}");
    };
    let now = |uid: &str, version: &str, owners: &[&str]| LiveMeta {
        uid: uid.into(),
        resource_version: version.into(),
        finalizers: vec!["new".into()],
        owner_references: owners.iter().map(|uid| json!({ "uid": uid, "unknown": 1 })).collect(),
        ..LiveMeta::default()
    };
    check(&now("u", "43", &["a"]), Conflict::SameOwners);
    check(&now("u", "42", &["a"]), Conflict::Open);
    check(&now("u", "43", &["a", "b"]), Conflict::Open);
    check(&now("u", "43", &[]), Conflict::Open);
    check(&now("other", "43", &["a"]), Conflict::Absent);
    check(&now("other", "42", &["a"]), Conflict::Absent);
}
