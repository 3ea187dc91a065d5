//! The nodes and the DaemonSet's pods there, brought together once for all that a sync decides.
//!
//! Left out: deciding about them.
//!
//! Upstream: `getNodesToDaemonPods` and `podByCreationTimestampAndPhase`, `pkg/controller/daemon/daemon_controller.go`.

use std::ops::Range;
use std::sync::Arc;

use super::nodes::{Eligibility, eligibility};
use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::observe::Observed;

/// All nodes, and those besides that are gone and still have pods.
pub struct Places<'a> {
    /// By node, and each node's in the order in which they are kept: bound ones first, then the older. Those are left
    /// out that have ended and are being deleted, and those of which nobody can say the node.
    pods: Vec<&'a Arc<Pod>>,
    places: Vec<Place<'a>>,
}

struct Place<'a> {
    name: &'a str,
    node: Option<(&'a Arc<Node>, Eligibility)>,
    pods: Range<usize>,
}

/// A node, and the DaemonSet's pods there in the order in which they are kept.
pub struct OnNode<'a, 'p> {
    pub name: &'a str,
    /// The node, and whether the DaemonSet is for it; none if it is gone.
    pub node: Option<(&'a Arc<Node>, &'p Eligibility)>,
    pub pods: &'p [&'a Arc<Pod>],
}

impl OnNode<'_, '_> {
    pub fn runs(&self) -> bool {
        self.node.is_some_and(|(_, eligibility)| *eligibility == Eligibility::Runs)
    }
}

fn node_of(pod: &Arc<Pod>) -> &str {
    pod.node().map_or("", |node| node.as_str())
}

impl<'a> Places<'a> {
    pub fn of(observed: &'a Observed) -> Self {
        let counted = observed.pods.iter().filter(|pod| !pod.is_past() && pod.node().is_some());
        let mut pods: Vec<&Arc<Pod>> = counted.collect();
        pods.sort_unstable_by(|a, b| {
            let by_node = node_of(a).cmp(node_of(b));
            let rank = |pod: &Pod| (!pod.is_bound(), pod.metadata.creation);
            by_node.then_with(|| rank(a).cmp(&rank(b))).then_with(|| a.metadata.name().cmp(b.metadata.name()))
        });
        let mut all = Self { pods, places: Vec::with_capacity(observed.nodes.len()) };
        for node in &observed.nodes {
            while let Some(gone) = all.next_node().filter(|gone| *gone < node.metadata.name()) {
                all.add(gone, None);
            }
            all.add(node.metadata.name(), Some((node, eligibility(&observed.set, node))));
        }
        while let Some(gone) = all.next_node() {
            all.add(gone, None);
        }
        all
    }

    fn placed(&self) -> usize {
        self.places.last().map_or(0, |last| last.pods.end)
    }

    /// The node of the first pod that is not placed yet.
    fn next_node(&self) -> Option<&'a str> {
        self.pods.get(self.placed()).copied().map(node_of)
    }

    fn add(&mut self, name: &'a str, node: Option<(&'a Arc<Node>, Eligibility)>) {
        let from = self.placed();
        let count = self.pods[from..].iter().take_while(|pod| node_of(pod) == name).count();
        self.places.push(Place { name, node, pods: from..from + count });
    }

    pub fn iter(&self) -> impl Iterator<Item = OnNode<'a, '_>> {
        self.places.iter().map(|Place { name, node, pods }| OnNode {
            name,
            node: node.as_ref().map(|(node, eligibility)| (*node, eligibility)),
            pods: &self.pods[pods.clone()],
        })
    }
}
