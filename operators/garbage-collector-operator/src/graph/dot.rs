//! The graph as a drawing in the DOT language, for people.
//!
//! Left out: nodes without an owner and without a dependent, unless one is asked for.
//!
//! Upstream: `pkg/controller/garbagecollector/dump.go`.

use std::collections::BTreeSet;
use std::fmt::Write;

use shared::api::object::Uid;

use super::{Graph, Node, Stage};

/// Upstream's.
pub const CONTENT_TYPE: &str = "text/vnd.graphviz";

/// Draws the nodes of these uids with all their owners and dependents, or with no uid all that is connected.
pub fn dot(graph: &Graph, of: &[Uid]) -> String {
    let shown: BTreeSet<Uid> = if of.is_empty() {
        graph.nodes().filter(|node| is_connected(node)).map(uid).collect()
    } else {
        connected_to(graph, of)
    };
    let mut text = String::from("strict digraph full {\n  // Node definitions.\n");
    for node in shown.iter().filter_map(|uid| graph.node(*uid)) {
        let (identity, stage) = (&node.identity, node.stage);
        let kind = &identity.object.kind;
        let label = format!("{}/{}\n{}\n{stage:?}", kind.api_version, kind.kind, identity.key());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:?} [label={label:?}];", uid(node).to_string());
    }
    text.push_str("\n  // Edge definitions.\n");
    for node in shown.iter().filter_map(|uid| graph.node(*uid)) {
        for owner in node.owners.iter().map(|reference| reference.owner.uid).filter(|owner| shown.contains(owner)) {
            let _ = writeln!(text, "  {:?} -> {:?};", uid(node).to_string(), owner.to_string());
        }
    }
    text.push_str("}\n");
    text
}

fn uid(node: &Node) -> Uid {
    node.identity.object.uid
}

fn is_connected(node: &Node) -> bool {
    node.stage == Stage::Virtual || !node.owners.is_empty() || !node.dependents.is_empty()
}

fn connected_to(graph: &Graph, of: &[Uid]) -> BTreeSet<Uid> {
    let mut shown = BTreeSet::new();
    let mut next: Vec<Uid> = of.to_vec();
    while let Some(found) = next.pop() {
        let Some(node) = graph.node(found).filter(|_| !shown.contains(&found)) else { continue };
        shown.insert(found);
        next.extend(node.owners.iter().map(|reference| reference.owner.uid));
        next.extend(node.dependents.iter());
    }
    shown
}
