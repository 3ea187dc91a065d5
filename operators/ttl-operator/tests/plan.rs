//! Which time to live a Node is told: upstream's cases, and what holds for every number of Nodes.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use shared::api::object::Key;
use shared::following::cache::{Cache, Change, Indices};
use shared::testing::{ObjectBuilder, forget, object, store, uid};
use shared::working::effect::Effect;
use shared::working::queue::Cause;
use ttl_operator::apply::ttl_patch;
use ttl_operator::memory::{Boundary, Size};
use ttl_operator::objects::{Node, TTL};
use ttl_operator::observe::{Caches, Observed};
use ttl_operator::plan::{Plan, plan};

/// The numbers of Nodes around which something changes, and what is right where the cluster has only grown.
const TTLS: [(usize, u32); 5] = [(100, 0), (500, 15), (1000, 30), (2000, 60), (usize::MAX, 300)];

fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("")
}

fn annotated(ttl: &str) -> ObjectBuilder {
    node("a").annotation(TTL, ttl).annotation("a", "b")
}

/// A cluster that has had these numbers of Nodes, one after the other.
fn after(numbers: &[usize]) -> Boundary {
    numbers.iter().fold(Boundary::default(), |boundary, nodes| boundary.after(*nodes))
}

#[track_caller]
fn check(node: &ObjectBuilder, nodes: usize, expected: &str) {
    let observed = Observed { node: node.build(), nodes, boundary: after(&[nodes]) };
    let planned = plan(&observed);
    assert_eq!(planned.to_string(), expected);
    if let Plan::Annotate { uid: on, .. } = planned {
        assert_eq!(on, uid("a"));
    }
}

/// Upstream: `TestUpdateNodeIfNeeded`, and what `TestPatchNode` says of annotations that are there.
#[test]
fn a_node_is_annotated_unless_it_says_what_is_right() {
    check(&node("a"), 1, "annotate 0 (has none, nodes: 1)");
    check(&node("a"), 101, "annotate 15 (has none, nodes: 101)");
    check(&node("a"), 501, "annotate 30 (has none, nodes: 501)");
    check(&annotated("0"), 1001, "annotate 60 (has 0, nodes: 1001)");
    check(&annotated("60"), 1001, "keep (has 60, nodes: 1001)");
    check(&annotated("60"), 501, "annotate 30 (has 60, nodes: 501)");
    check(&node("a").annotation("a", "b"), 1, "annotate 0 (has none, nodes: 1)");
    check(&node("a").set(&["metadata", "annotations"], json!(null)), 1, "annotate 0 (has none, nodes: 1)");
    // All texts that Go's strconv.Atoi reads are numbers.
    for zero in ["0", "+0", "-0", "000"] {
        check(&annotated(zero), 1, "keep (has 0, nodes: 1)");
    }
    check(&annotated("-1"), 1, "annotate 0 (has -1, nodes: 1)");
    for text in ["", " 0", "0s", "0x0", "1_5", "99999999999999999999"] {
        check(&annotated(text), 1, "annotate 0 (annotation is not a number, nodes: 1)");
    }
    // A Node that is being deleted is still there.
    check(&node("a").terminating(), 1, "annotate 0 (has none, nodes: 1)");
}

/// Upstream: `TestPatchNode`.
#[test]
fn the_patch_is_of_one_annotation() {
    for (ttl_seconds, text) in [(0, "0"), (10, "10")] {
        assert_eq!(ttl_patch(ttl_seconds), json!({ "metadata": { "annotations": { TTL: text } } }));
    }
}

/// Upstream: `TestDesiredTTL`. It begins with numbers of Nodes; here they are what a cluster comes from.
#[test]
fn the_time_to_live_depends_on_the_number_of_nodes_and_on_the_one_before() {
    for (numbers, expected) in [
        (&[0, 1][..], 0),
        (&[99, 100], 0),
        (&[100, 101], 15),
        (&[101, 100], 15),
        (&[101, 91, 90], 15),
        (&[101, 91, 92], 15),
        (&[101, 90, 89], 0),
        (&[2001, 1800, 1799], 60),
        (&[10_000, 9_999], 300),
        // Both edges of all others.
        (&[500], 15),
        (&[501, 450], 30),
        (&[501, 449], 15),
        (&[1000], 30),
        (&[1001, 900], 60),
        (&[1001, 899], 30),
        (&[2000], 60),
        (&[2001, 1800], 300),
        // Many at once, as a list after a cut tells them.
        (&[10_000, 95], 15),
        (&[10_000, 89], 0),
        (&[95, 10_000, 1000], 60),
    ] {
        assert_eq!(after(numbers).ttl_seconds(), expected, "{numbers:?}");
    }
}

/// Caches with these Nodes in them, all of which say `0`.
fn cluster(count: usize) -> Caches {
    let caches = Caches { nodes: Arc::new(Cache::new(Indices::default())), size: Size::default() };
    (0..count).for_each(|n| store(&caches.nodes, &node(&n.to_string()).annotation(TTL, "0").build()));
    caches.note_size();
    caches
}

#[test]
fn a_change_of_a_node_means_work_only_where_its_annotation_is_wrong_by_now() {
    let caches = cluster(100);
    let known = caches.nodes.get(&Key::new("", "7")).unwrap();
    let heartbeat = Change::Updated { old: &known, new: &known };
    assert_eq!(caches.node_changed(Change::Added(&known)), []);
    assert_eq!(caches.node_changed(heartbeat), []);

    let last: Arc<Node> = node("last").build();
    store(&caches.nodes, &last);
    caches.note_size();
    let enqueued = |name| [Effect::Enqueue(Key::new("", name), Cause::Event)];
    assert_eq!(caches.node_changed(Change::Added(&last)), enqueued("last"));
    assert_eq!(caches.node_changed(heartbeat), enqueued("7"));

    forget(&caches.nodes, &last);
    assert_eq!(caches.node_changed(Change::Deleted(&last)), []);
    // A cluster that has grown and shrunk a little still is what it has grown to.
    caches.note_size();
    assert_eq!(caches.node_changed(heartbeat), enqueued("7"));
}

/// One Node more or less at a time, as upstream counts them.
fn one_by_one(mut boundary: Boundary, from: usize, to: usize) -> Boundary {
    let mut nodes = from;
    while nodes != to {
        nodes = if nodes < to { nodes + 1 } else { nodes - 1 };
        boundary = boundary.after(nodes);
    }
    boundary
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_applying_there_is_nothing_left_to_plan(numbers in proptest::collection::vec(0..3000_usize, 1..9), found in "[0-9]{0,3}") {
        let (nodes, boundary) = (*numbers.last().unwrap(), after(&numbers));
        let observe = |ttl: &str| Observed { node: annotated(ttl).build(), nodes, boundary };
        match plan(&observe(&found)) {
            Plan::Annotate { ttl_seconds, .. } => {
                let then = plan(&observe(&ttl_seconds.to_string()));
                prop_assert!(matches!(then, Plan::Keep(_)), "{}", then);
            }
            Plan::Keep(_) => prop_assert_eq!(found.parse(), Ok(boundary.ttl_seconds())),
        }
    }

    #[test]
    fn many_nodes_at_once_are_as_one_after_the_other(numbers in proptest::collection::vec(0..3000_usize, 1..6)) {
        let (mut jumping, mut walking, mut before) = (Boundary::default(), Boundary::default(), 0);
        for nodes in numbers {
            jumping = jumping.after(nodes);
            walking = one_by_one(walking, before, nodes);
            before = nodes;
            prop_assert_eq!(jumping, walking, "at {}", nodes);
        }
    }

    #[test]
    fn a_cluster_that_has_only_grown_is_told_the_shortest_time_and_noting_it_twice_changes_nothing(nodes in 0..3000_usize) {
        let fresh = after(&[nodes]);
        let expected = TTLS.iter().find(|(max, _)| nodes <= *max).map(|(_, ttl_seconds)| *ttl_seconds);
        prop_assert_eq!(Some(fresh.ttl_seconds()), expected);
        prop_assert_eq!(fresh.after(nodes), fresh);
        // And never shorter than that, wherever it comes from.
        prop_assert!(after(&[10_000, nodes]).ttl_seconds() >= fresh.ttl_seconds());
    }
}
