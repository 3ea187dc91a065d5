//! Reads one Node and the size of the cluster.

use std::sync::Arc;

use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::{Boundary, Size};
use crate::objects::Node;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub node: Arc<Node>,
    /// How many Nodes there are.
    pub nodes: usize,
    pub boundary: Boundary,
}

pub struct Caches {
    pub nodes: Arc<Cache<Node>>,
    /// The last size of the cluster.
    pub size: Size,
}

pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let nodes = InformerBuilder::new().metadata_only().build();
        (Self { nodes: nodes.cache(), size: Size::default() }, Informers { nodes })
    }

    /// Remembers how many Nodes there are now.
    pub fn note_size(&self) {
        self.size.note(self.nodes.len());
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (node, nodes) = (self.nodes.get(key)?, self.nodes.len());
        Some(Observed { node, nodes, boundary: self.size.boundary(nodes) })
    }
}
