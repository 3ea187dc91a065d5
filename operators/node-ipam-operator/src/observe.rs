//! Reads one Node, and the blocks of the ranges.
//!
//! Left out: live reads. The apiserver refuses other CIDRs for a Node that has some, so a patch decided on an old state
//! changes nothing.

pub mod cidr_set;
pub mod pool;

use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::runtime::cache::{Cache, IndexId, IndexValue};
use shared::runtime::informer::{Informer, InformerBuilder};

use self::pool::Pool;
use crate::apply::Fate;
use crate::objects::Node;
use crate::objects::cidr::Cidr;
use crate::plan::Plan;

/// The observation of one Node.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The Node.
    pub node: Arc<Node>,
    /// Where each of its CIDRs is.
    pub places: Vec<Place>,
    /// The ranges; none if it has CIDRs already.
    pub ranges: Vec<Range>,
    /// The CIDRs that it was given, as long as the cache shows none.
    pub given: Option<Vec<Cidr>>,
}

/// What is free of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The range.
    pub cluster_cidr: Cidr,
    /// The block that a Node would get; none if all are taken.
    pub next: Option<Cidr>,
    /// How many blocks are free.
    pub free: u64,
}

/// Where a CIDR of a Node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a range, and nobody else has any of its addresses.
    Own,
    /// In a range, and somebody else has some of its addresses.
    Shared,
    /// In no range.
    Outside,
}

/// The cache of this operator, and the blocks that are taken.
pub struct Caches {
    /// All Nodes.
    pub nodes: Arc<Cache<Node>>,
    /// The Nodes without CIDRs.
    pub nodes_without_cidrs: IndexId,
    /// The blocks that are taken.
    pub pool: Pool,
}

/// The informer that fills the cache.
pub struct Informers {
    pub(crate) nodes: Informer<Node>,
}

/// The value under which Nodes without CIDRs are found.
fn without_cidrs() -> IndexValue {
    IndexValue::Text(Text::default())
}

impl Caches {
    /// An empty cache, and the informer that fills it.
    pub fn new(pool: Pool) -> (Self, Informers) {
        let mut nodes = InformerBuilder::<Node>::new();
        let nodes_without_cidrs = nodes.index(|node, emit| {
            if node.pod_cidrs().is_empty() {
                emit(without_cidrs());
            }
        });
        let nodes = nodes.build();
        (Self { nodes: nodes.cache(), nodes_without_cidrs, pool }, Informers { nodes })
    }

    /// Reads the Node of this key; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let node = self.nodes.get(key)?;
        let places = self.pool.places(node.pod_cidrs());
        if !node.pod_cidrs().is_empty() {
            return Some(Observed { node, places, ranges: Vec::new(), given: None });
        }
        let (ranges, given) = (self.pool.ranges(), self.pool.given(key, node.metadata.uid));
        Some(Observed { node, places, ranges, given })
    }

    /// Takes the CIDRs that are planned for a Node.
    pub fn reserve(&self, observed: &Observed, plan: &Plan) {
        match plan {
            Plan::Assign { cidrs, uid, reason: _ } => self.pool.give(&observed.node.metadata.key, *uid, cidrs),
            Plan::Keep(_) | Plan::Wait { .. } => {}
        }
    }

    /// Takes in how a plan has ended.
    pub fn settle(&self, observed: &Observed, fate: Fate) {
        let (key, uid) = (&observed.node.metadata.key, observed.node.metadata.uid);
        match fate {
            Fate::Refused => self.pool.refuse(key, uid),
            Fate::Known | Fate::InDoubt => self.pool.keep(key, uid),
        }
    }

    /// The Nodes, by name, that wait for CIDRs and were given none yet.
    pub fn waiting(&self) -> impl Iterator<Item = Arc<Node>> {
        let nodes = self.nodes.by_index(self.nodes_without_cidrs, &without_cidrs());
        let is_given = |node: &Arc<Node>| self.pool.given(&node.metadata.key, node.metadata.uid).is_some();
        nodes.into_iter().filter(move |node| !node.metadata.is_being_deleted() && !is_given(node))
    }
}
