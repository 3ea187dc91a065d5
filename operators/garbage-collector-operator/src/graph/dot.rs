//! The graph in the DOT language. Nodes without owners and dependents are drawn only if they are asked for.
//!
//! Upstream: `pkg/controller/garbagecollector/dump.go`.

use std::collections::BTreeSet;
use std::fmt::Write;

use shared::api::object::Uid;

use super::{Graph, Node, Stage};

/// Upstream's.
pub const CONTENT_TYPE: &str = "text/vnd.graphviz";

/// How many nodes are drawn at a time.
const PIECE: usize = 256;

/// An unfinished drawing. The graph may change between two pieces; each piece shows it as it is then.
pub struct Drawing {
    /// None for all connected nodes.
    shown: Option<BTreeSet<Uid>>,
    next: Part,
}

enum Part {
    Head,
    /// Those after this one.
    Nodes(Option<Uid>),
    Edges(Option<Uid>),
    End,
}

impl Drawing {
    /// A drawing of the nodes of these uids with all their owners and dependents; without a uid, of all connected nodes.
    pub fn new(graph: &Graph, of: &[Uid]) -> Self {
        Self { shown: (!of.is_empty()).then(|| connected_to(graph, of)), next: Part::Head }
    }

    /// The next piece; none at the end.
    pub fn piece(&mut self, graph: &Graph) -> Option<String> {
        let mut text = String::new();
        self.next = match self.next {
            Part::Head => {
                text.push_str("strict digraph full {\n  // Node definitions.\n");
                Part::Nodes(None)
            }
            Part::Nodes(after) => {
                let last = self.draw(graph, after, |node| draw_node(&mut text, node));
                if last.is_none() {
                    text.push_str("\n  // Edge definitions.\n");
                }
                last.map_or(Part::Edges(None), |last| Part::Nodes(Some(last)))
            }
            Part::Edges(after) => {
                let last = self.draw(graph, after, |node| self.draw_edges(graph, &mut text, node));
                if last.is_none() {
                    text.push_str("}\n");
                }
                last.map_or(Part::End, |last| Part::Edges(Some(last)))
            }
            Part::End => return None,
        };
        Some(text)
    }

    /// Draws the next nodes, and returns the last of them; none if there are no more.
    fn draw(&self, graph: &Graph, after: Option<Uid>, mut draw: impl FnMut(&Node)) -> Option<Uid> {
        let shown = |node: &&Node| match &self.shown {
            Some(shown) => shown.contains(&uid(node)),
            None => is_connected(node),
        };
        let mut last = None;
        for node in graph.nodes_after(after).filter(shown).take(PIECE) {
            draw(node);
            last = Some(uid(node));
        }
        last
    }

    fn draw_edges(&self, graph: &Graph, text: &mut String, node: &Node) {
        let is_shown = |owner: &Uid| match &self.shown {
            Some(shown) => shown.contains(owner),
            None => graph.node(*owner).is_some(),
        };
        for owner in node.owners.iter().map(|reference| reference.owner.uid).filter(is_shown) {
            let _ = writeln!(text, "  {:?} -> {:?};", uid(node).to_string(), owner.to_string());
        }
    }
}

fn draw_node(text: &mut String, node: &Node) {
    let (identity, stage) = (&node.identity, node.stage);
    let kind = &identity.object.kind;
    let label = format!("{}/{}\n{}\n{stage:?}", kind.api_version, kind.kind, identity.key());
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {:?} [label={label:?}];", uid(node).to_string());
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
