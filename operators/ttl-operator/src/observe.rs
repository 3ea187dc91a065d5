//! Reads one Node, and how large the cluster is.
//!
//! The last boundary is remembered: where two boundaries overlap, the decision depends on the former one.
//! Left out: the boundary of a former process, as upstream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::runtime::cache::Cache;
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::Node;
use crate::plan::Boundary;

/// The observation of one Node and of the size of its cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The Node.
    pub node: Arc<Node>,
    /// How many Nodes there are.
    pub nodes: usize,
    /// The boundary for this many Nodes.
    pub boundary: Boundary,
}

/// The caches of this operator.
pub struct Caches {
    /// All Nodes.
    pub nodes: Arc<Cache<Node>>,
    /// How large their number was.
    pub size: Size,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
}

/// The boundary that was right for the number of Nodes when it last changed.
#[derive(Default)]
pub struct Size(Mutex<Boundary>);

impl Size {
    /// The boundary for this number of Nodes, after the former boundary.
    pub fn boundary(&self, nodes: usize) -> Boundary {
        self.last().after(nodes)
    }

    fn last(&self) -> MutexGuard<'_, Boundary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let nodes = InformerBuilder::new().metadata_only().build();
        (Self { nodes: nodes.cache(), size: Size::default() }, Informers { nodes })
    }

    /// Takes in how many Nodes there are now.
    pub fn note_size(&self) {
        let mut last = self.size.last();
        *last = last.after(self.nodes.len());
    }

    /// Reads the Node of this key; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (node, nodes) = (self.nodes.get(key)?, self.nodes.len());
        Some(Observed { node, nodes, boundary: self.size.boundary(nodes) })
    }
}
