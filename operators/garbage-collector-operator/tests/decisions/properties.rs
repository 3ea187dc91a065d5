//! The incremental graph against a model that knows everything and searches all of it each time.

use std::collections::{BTreeMap, BTreeSet};

use garbage_collector_operator::graph::{Attempts, Event, Graph, Stage};
use garbage_collector_operator::objects::OwnerReference;
use proptest::prelude::{Just, Strategy, TestCaseError, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use shared::api::object::Uid;

use crate::fixtures::{Thing, thing};

const OBJECTS: [(&str, &str); 7] = [
    ("Node", "n"),
    ("ReplicaSet", "a/rs"),
    ("Pod", "a/p"),
    ("Pod", "a/q"),
    ("ReplicaSet", "b/rs2"),
    ("Pod", "b/p2"),
    ("Pod", "b/q2"),
];

/// One object's next state: which of the others it names and how, and how it is being deleted; or its end.
#[derive(Clone, Debug)]
struct Step {
    object: usize,
    owners: Vec<(usize, Reference)>,
    deleting: Option<(bool, bool)>,
    is_end: bool,
    delivery: Delivery,
}

#[derive(Clone, Copy, Debug)]
enum Reference {
    Plain,
    Blocking,
    WrongName,
}

/// How a state reaches the graph, besides once and in time.
#[derive(Clone, Copy, Debug)]
enum Delivery {
    Once,
    Twice,
    /// The state before it comes again, after it.
    OldOneLate,
    /// As part of a list of its kind.
    InList,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reference = prop_oneof![Just(Reference::Plain), Just(Reference::Blocking), Just(Reference::WrongName)];
    let delivery =
        prop_oneof![Just(Delivery::Once), Just(Delivery::Twice), Just(Delivery::OldOneLate), Just(Delivery::InList)];
    let owners = proptest::collection::vec((0..OBJECTS.len(), reference), 0..3);
    let deleting = proptest::option::weighted(0.3, any::<(bool, bool)>());
    let step = (0..OBJECTS.len(), owners, deleting, proptest::bool::weighted(0.2), delivery);
    let step = step.prop_map(|(object, owners, deleting, is_end, delivery)| Step {
        object,
        owners,
        deleting,
        is_end,
        delivery,
    });
    proptest::collection::vec(step, 1..40)
}

/// All objects there are; nothing is derived before it is asked for.
#[derive(Default)]
struct Model {
    live: BTreeMap<Uid, (Thing, bool)>,
    ended: BTreeSet<Uid>,
}

impl Model {
    fn dependents(&self, owner: Uid) -> BTreeSet<Uid> {
        let live = self.live.iter();
        live.filter(|(_, (thing, _))| names(thing, owner).is_some()).map(|(uid, _)| *uid).collect()
    }

    /// The objects to be attempted when `thing` takes this state, of which `graph` does not know yet.
    fn expected(&self, thing: &Thing, graph: &Graph) -> (BTreeSet<Uid>, BTreeSet<Uid>) {
        let (mut delete, mut orphan) = (BTreeSet::new(), BTreeSet::new());
        let before = self.live.get(&thing.uid).map(|(thing, _)| thing);
        let newly = |is: fn(&Thing) -> bool| is(thing) && !before.is_some_and(is);
        if newly(Thing::starts_orphan) {
            orphan.insert(thing.uid);
        } else if newly(Thing::starts_foreground) {
            delete.extend(self.dependents(thing.uid));
            delete.insert(thing.uid);
        }
        for reference in before.into_iter().flat_map(Thing::references) {
            let owner = reference.owner.uid;
            let last = before.and_then(|before| names(before, owner));
            let blocked = last.is_some_and(OwnerReference::blocks);
            let blocks = names(thing, owner).is_some_and(OwnerReference::blocks);
            if blocked && !blocks && graph.node(owner).is_some() {
                delete.insert(owner);
            }
        }
        (delete, orphan)
    }

    /// The objects to be attempted when an object ends.
    fn expected_at_end(&self, thing: &Thing) -> BTreeSet<Uid> {
        let mut delete = self.dependents(thing.uid);
        delete.remove(&thing.uid);
        let owners = thing.references().map(|reference| reference.owner.uid);
        delete.extend(owners.filter(|owner| {
            *owner != thing.uid && self.live.get(owner).is_some_and(|(_, deletes_dependents)| *deletes_dependents)
        }));
        delete
    }

    fn take(&mut self, thing: &Thing) {
        let before = self.live.get(&thing.uid);
        let newly = thing.starts_foreground() && !before.is_some_and(|(before, _)| before.starts_foreground());
        let orphans = thing.starts_orphan() && !before.is_some_and(|(before, _)| before.starts_orphan());
        let at_once = before.is_none() && thing.starts_foreground();
        let deletes = before.is_some_and(|(_, deletes)| *deletes) || (newly && !orphans) || at_once;
        self.live.insert(thing.uid, (thing.clone(), deletes));
    }
}

fn names(thing: &Thing, owner: Uid) -> Option<&OwnerReference> {
    thing.references().filter(|reference| reference.owner.uid == owner).last()
}

fn build(step: &Step, version: u64) -> Thing {
    let (kind, key) = OBJECTS[step.object];
    let mut built = thing(kind, key).version(version);
    for (owner, reference) in &step.owners {
        let (kind, key) = OBJECTS[*owner];
        let owner = thing(kind, key);
        built = match reference {
            Reference::Plain => built.owned_by(&owner),
            Reference::Blocking => built.blocking(&owner),
            Reference::WrongName => built.reference(&owner.kind, "wrong", owner.uid, None),
        };
    }
    match step.deleting {
        Some((orphan, foreground)) => {
            let orphan = orphan.then_some("orphan");
            let foreground = foreground.then_some("foregroundDeletion");
            built.deleting(&orphan.into_iter().chain(foreground).collect::<Vec<_>>())
        }
        None => built,
    }
}

/// Gives all attempts of delivering one state.
fn deliver(graph: &mut Graph, model: &Model, thing: &Thing, how: Delivery) -> Attempts {
    let before = model.live.get(&thing.uid).map(|(before, _)| before.object());
    let object = thing.object();
    if let Delivery::InList = how {
        let others = model.live.values().filter(|(other, _)| other.kind == thing.kind && other.uid != thing.uid);
        let live: Vec<_> = others.map(|(other, _)| other.object()).chain([object]).map(std::sync::Arc::new).collect();
        return graph.update(Event::Listed(&thing.kind, &live, &BTreeSet::new()));
    }
    let attempts = graph.update(Event::Observed(&thing.kind, &object));
    let again = match (how, before) {
        (Delivery::Twice, _) => graph.update(Event::Observed(&thing.kind, &object)),
        (Delivery::OldOneLate, Some(before)) => graph.update(Event::Observed(&thing.kind, &before)),
        (Delivery::Once | Delivery::OldOneLate | Delivery::InList, _) => Attempts::default(),
    };
    assert_eq!(again, Attempts::default(), "what is known already is worth nothing");
    attempts
}

fn agrees(graph: &Graph, model: &Model) -> Result<(), TestCaseError> {
    let observed: Vec<Uid> =
        graph.nodes().filter(|node| node.stage != Stage::Virtual).map(|node| node.identity.object.uid).collect();
    prop_assert_eq!(observed, model.live.keys().copied().collect::<Vec<_>>());
    for (uid, (thing, deletes_dependents)) in &model.live {
        let Some(node) = graph.node(*uid) else { return Err(TestCaseError::fail("a live object has no node")) };
        prop_assert_eq!(&node.identity, &thing.identity());
        prop_assert_eq!(&node.owners, &thing.object().owners);
        prop_assert_eq!(node.stage == Stage::DeletingDependents, *deletes_dependents);
    }
    for node in graph.nodes() {
        let uid = node.identity.object.uid;
        let dependents: BTreeSet<Uid> = graph.dependents(uid).map(|node| node.identity.object.uid).collect();
        let expected = model.dependents(uid);
        // A dependent that outlives its owner is attempted at the owner's end; only a later dependent makes the owner a
        // node again.
        let is_right =
            if model.ended.contains(&uid) { dependents.is_subset(&expected) } else { dependents == expected };
        prop_assert!(is_right, "dependents of {}: {:?}, not {:?}", node.identity, dependents, expected);
    }
    Ok(())
}

proptest! {
    /// After any states, which come twice, late or in a list, the graph is the one that the model finds by searching,
    /// and every attempt that the model asks for is made.
    #[test]
    fn the_graph_agrees_with_a_search_over_everything(steps in steps()) {
        let (mut graph, mut model) = (Graph::default(), Model::default());
        let mut attempted = BTreeSet::new();
        for (version, step) in (1..).zip(steps) {
            let thing = build(&step, version);
            if model.ended.contains(&thing.uid) {
                continue;
            }
            if step.is_end {
                let Some((last, _)) = model.live.remove(&thing.uid) else { continue };
                model.ended.insert(last.uid);
                let expected = model.expected_at_end(&last);
                let attempts = graph.update(Event::Deleted(&last.kind, &last.object()));
                let made: BTreeSet<Uid> = attempts.attempt_to_delete.iter().copied().filter(|uid| *uid != last.uid).collect();
                prop_assert_eq!(made, expected);
                attempted.extend(attempts.attempt_to_delete);
                let again = graph.update(Event::Deleted(&last.kind, &last.object()));
                prop_assert_eq!(again, Attempts::default());
            } else {
                let (delete, orphan) = model.expected(&thing, &graph);
                let attempts = deliver(&mut graph, &model, &thing, step.delivery);
                let made: BTreeSet<Uid> = attempts.attempt_to_delete.iter().copied().collect();
                prop_assert!(made.is_superset(&delete), "{:?} without {:?}", made, delete);
                prop_assert_eq!(attempts.attempt_to_orphan.iter().copied().collect::<BTreeSet<_>>(), orphan);
                attempted.extend(made);
                model.take(&thing);
            }
            agrees(&graph, &model)?;
        }
        // Nobody with an owner that is not there is forgotten: it was attempted itself, or its owner is looked for.
        for (uid, (thing, _)) in &model.live {
            for reference in thing.references().filter(|reference| !model.live.contains_key(&reference.owner.uid)) {
                let owner = reference.owner.uid;
                prop_assert!(attempted.contains(uid) || (attempted.contains(&owner) && graph.node(owner).is_some()));
            }
        }
    }

    /// The order in which monitors deliver their objects does not matter for who owns whom.
    #[test]
    fn the_order_of_arrival_is_irrelevant(steps in steps(), order in Just((0..OBJECTS.len()).collect::<Vec<_>>()).prop_shuffle()) {
        let mut last: BTreeMap<usize, Thing> = BTreeMap::new();
        for (version, step) in (1..).zip(&steps) {
            last.insert(step.object, build(step, version));
        }
        let build_graph = |order: &[usize]| {
            let mut graph = Graph::default();
            for thing in order.iter().filter_map(|object| last.get(object)) {
                graph.update(Event::Observed(&thing.kind, &thing.object()));
            }
            let edges: Vec<(Uid, bool, Vec<Uid>)> = graph
                .nodes()
                .map(|node| node.identity.object.uid)
                .map(|uid| {
                    let is_virtual = graph.node(uid).is_some_and(|node| node.stage == Stage::Virtual);
                    (uid, is_virtual, graph.dependents(uid).map(|node| node.identity.object.uid).collect())
                })
                .collect();
            edges
        };
        let sorted: Vec<usize> = (0..OBJECTS.len()).collect();
        prop_assert_eq!(build_graph(&sorted), build_graph(&order));
    }
}
