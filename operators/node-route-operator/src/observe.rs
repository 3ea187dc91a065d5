//! Reads one Node with its routes, or all of them for a round.
//!
//! The routes are those of the last list. A route is created and deleted once however often that is asked for, so an old
//! list costs a call and no more.

use std::sync::Arc;

use shared::api::cidr::{Cidr, PodCidr};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::{Known, Pause, Routes};
use crate::objects::{ListedRoute, Node};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub key: Key,
    /// None if it is gone.
    pub node: Option<Arc<Node>>,
    /// The routes to it.
    pub routes: Known,
    /// The routes to its pods that lead elsewhere and will be deleted. Many clouds have one route to a destination.
    pub in_the_way: Vec<Arc<ListedRoute>>,
    /// The last time for which the cloud wanted no call about it.
    pub pause: Option<Pause>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRound {
    /// The Nodes that exist, and those that are gone and still have routes.
    pub nodes: Vec<Observed>,
    /// The routes that lead to no Node.
    pub loose: Vec<Arc<ListedRoute>>,
}

pub struct Caches {
    pub nodes: Arc<Cache<Node>>,
    nodes_by_cidr: IndexId,
    pub routes: Routes,
    cluster_cidrs: Box<[Cidr]>,
}

impl Caches {
    pub fn new(cluster_cidrs: Box<[Cidr]>) -> (Self, Informer<Node>) {
        let mut nodes = InformerBuilder::<Node>::new();
        let nodes_by_cidr = nodes.index(|node, emit| node.pod_cidrs.iter().map(index_value).for_each(emit));
        let nodes = nodes.build();
        (Self { nodes: nodes.cache(), nodes_by_cidr, routes: Routes::default(), cluster_cidrs }, nodes)
    }

    /// Reads the Node of this key; none if it is gone and no route leads to it.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (node, routes) = (self.nodes.get(key), self.routes.of_node(key.name()));
        let has_routes = || matches!(&routes, Known::Routes(routes) if !routes.is_empty());
        if node.is_none() && !has_routes() {
            return None;
        }
        let cidrs = node.iter().flat_map(|node| node.pod_cidrs.iter());
        let in_the_way = cidrs.flat_map(|cidr| self.routes.to(cidr)).filter(|route| self.is_in_the_way(route, key));
        let (in_the_way, pause) = (in_the_way.collect(), self.routes.pause_of(key.name()));
        Some(Observed { key: key.clone(), node, routes, in_the_way, pause })
    }

    /// Whether it leads elsewhere, and is deleted for that.
    fn is_in_the_way(&self, route: &ListedRoute, of: &Key) -> bool {
        let target = &route.route.target_node;
        target != of.name() && route.is_ours(&self.cluster_cidrs) && (route.route.blackhole || !self.is_needed(route))
    }

    /// Whether the Node that it leads to has its destination.
    fn is_needed(&self, route: &ListedRoute) -> bool {
        let target = self.nodes.get(&Key::new("", &route.route.target_node));
        target.is_some_and(|node| node.pod_cidrs.contains(&route.destination))
    }

    pub fn observe_round(&self) -> ObservedRound {
        let is_gone = |name: &String| !name.is_empty() && self.nodes.get(&Key::new("", name)).is_none();
        let gone = self.routes.targets().into_iter().filter(is_gone).map(|name| Key::new("", &name));
        let keys = self.nodes.all().into_iter().map(|node| node.metadata.key.clone()).chain(gone);
        let nodes = keys.filter_map(|key| self.observe(&key)).collect();
        let loose = if let Known::Routes(loose) = self.routes.of_node("") { loose } else { Vec::new() };
        ObservedRound { nodes, loose }
    }

    /// The Nodes with this CIDR.
    pub fn with_cidr(&self, cidr: &PodCidr) -> Vec<Arc<Node>> {
        self.nodes.by_index(self.nodes_by_cidr, &index_value(cidr))
    }

    pub fn cluster_cidrs(&self) -> &[Cidr] {
        &self.cluster_cidrs
    }
}

fn index_value(cidr: &PodCidr) -> IndexValue {
    IndexValue::Text(Text::new(&cidr.to_string()))
}
