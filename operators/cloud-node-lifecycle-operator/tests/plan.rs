//! What becomes of a node by its condition and the provider's answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cloud_node_lifecycle_operator::apply::shutdown_patch;
use cloud_node_lifecycle_operator::memory::Absences;
use cloud_node_lifecycle_operator::objects::Node;
use cloud_node_lifecycle_operator::observe::{Answer, Caches, Observed, Others};
use cloud_node_lifecycle_operator::plan::{Absence, Config, Next, Plan, next};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::following::cache::{Cache, Change, Indices};
use shared::testing::{NOW, ObjectBuilder, ago, object, store, uid};
use shared::transport::clock::instant;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

const CONFIG: Config = Config { period: Duration::from_secs(5), asks_about_others: true };

/// A node whose condition Ready has this status; `""` for none.
fn node(name: &str, ready: &str) -> ObjectBuilder {
    let node = object("v1", "Node", name).namespace("");
    if ready.is_empty() {
        node
    } else {
        node.set(&["status", "conditions"], json!([{ "type": "Ready", "status": ready }]))
    }
}

fn tainted(node: ObjectBuilder) -> ObjectBuilder {
    node.set(&["spec", "taints"], json!([{ "key": SHUTDOWN, "effect": "NoSchedule" }]))
}

fn asked(node: &ObjectBuilder, answer: Answer) -> Observed {
    Observed { node: node.build(), absent_since: None, answer, others: Others::NotAsked }
}

/// The observation of a node that the provider has not known for some seconds.
fn absent(node: &ObjectBuilder, seconds: i64, others: Others) -> Observed {
    Observed { absent_since: Some(ago(seconds)), others, ..asked(node, Answer::Absent) }
}

#[track_caller]
fn check(observed: &Observed, expected: &str) {
    assert_eq!(next(observed, &CONFIG, NOW).to_string(), expected);
}

#[test]
fn the_provider_is_asked_about_a_node_that_is_not_ready() {
    for (ready, stage) in [
        ("True", "keep (ready)"),
        ("False", "ask whether its instance exists (not ready)"),
        ("Unknown", "ask whether its instance exists (unknown)"),
        ("", "ask whether its instance exists (unknown)"),
        ("Maybe", "ask whether its instance exists (unknown)"),
    ] {
        check(&asked(&node("a", ready), Answer::None), stage);
    }
    let pressure = json!([{ "type": "MemoryPressure", "status": "True" }]);
    let other = node("a", "").set(&["status", "conditions"], pressure);
    check(&asked(&other, Answer::None), "ask whether its instance exists (unknown)");
}

#[test]
fn a_node_is_tainted_while_its_instance_is_shut_down_until_it_is_ready() {
    let (shut_down, runs) = (Answer::Exists { is_shut_down: true }, Answer::Exists { is_shut_down: false });
    let taint = format!("taint {SHUTDOWN}:NoSchedule (not ready, its instance is shut down)");
    check(&asked(&node("a", "False"), shut_down.clone()), &taint);
    check(&asked(&tainted(node("a", "Unknown")), shut_down), "keep (unknown, its instance is shut down)");
    // It may still have to start.
    check(&asked(&tainted(node("a", "False")), runs.clone()), "keep (not ready, its instance exists)");
    check(&asked(&node("a", "False"), runs), "keep (not ready, its instance exists)");
    check(&asked(&tainted(node("a", "True")), Answer::None), &format!("untaint {SHUTDOWN}:NoSchedule (ready)"));
}

#[test]
fn a_node_is_deleted_at_the_second_answer_five_seconds_after_the_first_if_the_provider_knows_another_one() {
    let gone = node("a", "False");
    let first_seen = |seconds: i64| format!("its instance does not exist, first seen at {}", ago(seconds));
    check(&asked(&gone, Answer::Absent), &format!("keep ({})", first_seen(0)));
    check(&absent(&gone, 4, Others::NotAsked), &format!("keep ({})", first_seen(4)));
    // The clock was set back.
    check(&absent(&gone, -60, Others::NotAsked), &format!("keep ({})", first_seen(-60)));
    check(&absent(&gone, 5, Others::NotAsked), &format!("ask about other nodes ({})", first_seen(5)));
    check(&absent(&gone, 5, Others::Known), &format!("delete ({})", first_seen(5)));
    check(&absent(&gone, 5, Others::None), &format!("delete ({})", first_seen(5)));
    check(
        &absent(&gone, 60, Others::Unknown { nodes: 3 }),
        &format!("keep (the provider knows neither its instance since {} nor any of 3 other nodes)", ago(60)),
    );
    let deleting = gone.clone().terminating();
    check(&absent(&deleting, 60, Others::NotAsked), "keep (its instance does not exist, and it is being deleted)");
    let trusting = Config { asks_about_others: false, ..CONFIG };
    let planned = next(&absent(&gone, 5, Others::NotAsked), &trusting, NOW).to_string();
    assert_eq!(planned, format!("delete ({})", first_seen(5)));
}

#[test]
fn without_an_answer_a_node_stays_and_what_is_remembered_of_it_too() {
    let later = Answer::Later { after: Duration::from_secs(90), message: "quota".to_owned() };
    for (answer, text, again) in [
        (Answer::Gone, "keep (the node is gone)", None),
        (later, "keep (the provider asks for patience: quota)", Some(90)),
        (Answer::NotSupported, "keep (the provider does not support instances)", Some(60)),
    ] {
        let planned = next(&asked(&node("a", "False"), answer), &CONFIG, NOW);
        let Next::Execute(Plan { absence, again: asks_again, .. }) = &planned else { panic!("{planned}") };
        assert_eq!((planned.to_string().as_str(), *absence), (text, Absence::Unchanged));
        assert_eq!(*asks_again, again.map(Duration::from_secs), "{text}");
    }
}

#[test]
fn the_other_taints_of_a_node_stay_as_they_were_served() {
    let other = json!({ "key": "a", "effect": "NoSchedule", "newer": { "than": "this" } });
    let ours = json!({ "key": SHUTDOWN, "effect": "NoSchedule" });
    let evicting = json!({ "key": SHUTDOWN, "effect": "NoExecute" });
    let with = |taints: &[&Value]| -> Arc<Node> { node("a", "False").set(&["spec", "taints"], json!(taints)).build() };
    for (node, is_shut_down, expected) in [
        (with(&[&other]), true, json!([other, ours])),
        (node("a", "False").build(), true, json!([ours])),
        (with(&[&ours, &other, &evicting]), false, json!([other, evicting])),
        (with(&[&ours]), false, json!([])),
    ] {
        let patch: Value = serde_json::from_str(shutdown_patch(&node, is_shut_down).get()).unwrap();
        assert_eq!(patch, json!({ "spec": { "taints": expected } }));
    }
}

/// Caches with these nodes, and the given ones remembered as absent.
fn caches(nodes: &[ObjectBuilder], absent: &[&str]) -> Caches {
    let caches = Caches { nodes: Arc::new(Cache::new(Indices::default())), absences: Absences::default() };
    for node in nodes {
        store(&caches.nodes, &node.build());
    }
    for name in absent {
        caches.absences.note(&Key::new("", name), uid(name), instant());
    }
    caches
}

#[test]
fn of_the_other_nodes_of_the_same_cloud_those_that_are_ready_are_asked_about_first() {
    let of = |node: ObjectBuilder, id: &str| node.set(&["spec", "providerID"], id);
    let nodes = [
        of(node("a", "False"), "aws://zone/1"),
        of(node("b", "False"), "aws://zone/2"),
        of(node("c", "True"), "aws://zone/3"),
        of(node("d", "False"), "aws://zone/4"),
        of(node("e", "True"), "metal://5"),
        node("f", "True"),
    ];
    let caches = caches(&nodes, &["d"]);
    let others = |name: &str| {
        let (others, absent) = caches.others(&caches.nodes.get(&Key::new("", name)).unwrap());
        (others.iter().map(|other| other.metadata.name().to_owned()).collect::<Vec<_>>(), absent)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(others("a"), (names(&["c", "b"]), 1));
    assert_eq!(others("d"), (names(&["c", "a", "b"]), 0));
    assert_eq!(others("e"), (vec![], 0));
    // Nobody knows of which cloud it is.
    assert_eq!(others("f"), (names(&["c", "e", "a", "b"]), 1));
}

#[test]
fn an_absence_is_of_one_node_and_its_first_answer_counts() {
    let (absences, key, first) = (Absences::default(), Key::new("", "a"), instant());
    let later = first + Duration::from_secs(7);
    let since = |name: &str, at: Instant| absences.since(&key, uid(name), (NOW, at));
    absences.note(&key, uid("a"), first);
    absences.note(&key, uid("a"), later);
    assert_eq!((since("a", later), since("b", later)), (Some(ago(7)), None));
    absences.note(&key, uid("b"), later);
    assert_eq!((since("a", later), since("b", later)), (None, Some(NOW)));
    absences.forget(&key);
    assert_eq!(since("b", later), None);
}

#[test]
fn a_node_is_absent_for_as_long_as_before_after_the_clock_was_set() {
    let (absences, key, gone, first) = (Absences::default(), Key::new("", "a"), node("a", "False"), instant());
    absences.note(&key, uid("a"), first);
    for now in [ago(8 * 3600), NOW, ago(-8 * 3600)] {
        for (seconds, step) in [(4, "keep"), (5, "ask about other nodes")] {
            let absent_since = absences.since(&key, uid("a"), (now, first + Duration::from_secs(seconds)));
            let observed = Observed { absent_since, ..asked(&gone, Answer::Absent) };
            let planned = next(&observed, &CONFIG, now).to_string();
            assert!(planned.starts_with(step), "{now}: {planned}");
        }
    }
}

#[test]
fn a_change_of_a_node_leads_to_a_sync_if_its_readiness_or_its_taint_has_changed() {
    let caches = caches(&[], &[]);
    let enqueued = [Effect::Enqueue(Key::new("", "a"), Cause::Event)];
    let build = |node: &ObjectBuilder| -> Arc<Node> { node.build() };
    let (ready, lost) = (build(&node("a", "True")), build(&node("a", "Unknown")));
    let (ready_tainted, lost_tainted) = (build(&tainted(node("a", "True"))), build(&tainted(node("a", "Unknown"))));
    for (node, is_news) in [(&ready, false), (&lost, true), (&ready_tainted, true), (&lost_tainted, true)] {
        assert_eq!(caches.node_changed(Change::Added(node)), if is_news { &enqueued[..] } else { &[] });
        assert_eq!(caches.node_changed(Change::Updated { old: node, new: node }), []);
        let gone = [Effect::Forget(Key::new("", "a"), uid("a")), enqueued[0].clone()];
        assert_eq!(caches.node_changed(Change::Deleted(node)), gone);
    }
    for (old, new) in [(&ready, &lost), (&lost, &ready), (&lost, &lost_tainted), (&ready_tainted, &ready)] {
        assert_eq!(caches.node_changed(Change::Updated { old, new }), enqueued);
    }
}

fn any_observed() -> impl Strategy<Value = (ObjectBuilder, Observed)> {
    let answer = prop_oneof![
        Just(Answer::None),
        Just(Answer::Gone),
        any::<bool>().prop_map(|is_shut_down| Answer::Exists { is_shut_down }),
        Just(Answer::Absent),
        Just(Answer::NotSupported),
    ];
    let others = prop_oneof![
        Just(Others::NotAsked),
        Just(Others::None),
        Just(Others::Known),
        (0..4_usize).prop_map(|nodes| Others::Unknown { nodes }),
    ];
    let ready = prop_oneof![Just("True"), Just("False"), Just("Unknown"), Just("")];
    (ready, any::<bool>(), answer, others, proptest::option::of(-10..20_i64)).prop_map(
        |(ready, is_tainted, answer, others, seconds)| {
            let built = node("a", ready);
            let built = if is_tainted { tainted(built) } else { built };
            let absent_since: Option<Timestamp> = seconds.map(ago);
            let observed = Observed { node: built.build(), absent_since, answer, others };
            (built, observed)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn only_a_node_that_is_not_known_twice_is_deleted((_, observed) in any_observed()) {
        let planned = next(&observed, &CONFIG, NOW).to_string();
        if planned.starts_with("delete") {
            prop_assert_eq!(&observed.answer, &Answer::Absent);
            prop_assert!(observed.absent_since.is_some_and(|since| since <= ago(5)));
            prop_assert!(matches!(observed.others, Others::Known | Others::None));
        }
    }

    #[test]
    fn after_a_taint_was_added_or_removed_there_is_nothing_left_to_do((built, observed) in any_observed()) {
        let planned = next(&observed, &CONFIG, NOW).to_string();
        let is_shut_down = planned.starts_with("taint");
        if is_shut_down || planned.starts_with("untaint") {
            let patch: Value = serde_json::from_str(shutdown_patch(&observed.node, is_shut_down).get()).unwrap();
            let then = built.set(&["spec", "taints"], patch["spec"]["taints"].clone()).build();
            let then = next(&Observed { node: then, ..observed }, &CONFIG, NOW).to_string();
            prop_assert!(then.starts_with("keep"), "{}", then);
        }
    }
}
