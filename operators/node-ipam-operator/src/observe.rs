//! Reads one Node, and the blocks of the ranges.
//!
//! The apiserver refuses to change the CIDRs of a Node, so a patch decided on an old state changes nothing.

use std::sync::Arc;

use shared::api::cidr::Cidr;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::{Place, Pool, Range};
use crate::objects::Node;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub node: Arc<Node>,
    pub places: Vec<Place>,
    /// The ranges; none if it has CIDRs already.
    pub ranges: Vec<Range>,
    /// The CIDRs that were assigned to it, while the cache shows none.
    pub assigned: Option<Vec<Cidr>>,
}

pub struct Caches {
    pub nodes: Arc<Cache<Node>>,
    /// The Nodes without CIDRs.
    pub nodes_without_cidrs: IndexId,
    pub pool: Arc<Pool>,
}

pub struct Informers {
    pub(crate) nodes: Informer<Node>,
}

/// The value under which Nodes without CIDRs are found.
fn without_cidrs() -> IndexValue {
    IndexValue::Text(Text::default())
}

impl Caches {
    pub fn new(pool: Arc<Pool>) -> (Self, Informers) {
        let mut nodes = InformerBuilder::<Node>::new();
        let nodes_without_cidrs = nodes.index(|node, emit| {
            if node.pod_cidrs().is_empty() {
                emit(without_cidrs());
            }
        });
        let nodes = nodes.build();
        (Self { nodes: nodes.cache(), nodes_without_cidrs, pool }, Informers { nodes })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let node = self.nodes.get(key)?;
        let places = self.pool.places(node.pod_cidrs());
        if !node.pod_cidrs().is_empty() {
            return Some(Observed { node, places, ranges: Vec::new(), assigned: None });
        }
        let (ranges, assigned) = (self.pool.ranges(), self.pool.assigned(key, node.metadata.uid));
        Some(Observed { node, places, ranges, assigned })
    }

    /// The Nodes, by name, that wait for CIDRs.
    pub fn waiting(&self) -> impl Iterator<Item = Arc<Node>> {
        let nodes = self.nodes.by_index(self.nodes_without_cidrs, &without_cidrs());
        let is_assigned = |node: &Arc<Node>| self.pool.assigned(&node.metadata.key, node.metadata.uid).is_some();
        nodes.into_iter().filter(move |node| !node.metadata.is_being_deleted() && !is_assigned(node))
    }
}
