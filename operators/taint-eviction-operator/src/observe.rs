//! Reads a pod with its node and its pending deletion, or a node with its pods.
//!
//! Pending deletions are in memory, as upstream's timers: no object says when a pod was first seen with a taint that it
//! tolerates for a while. Another process begins to wait anew, as upstream.
//! Left out: live reads. Each write carries the uid of the pod that it was decided on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::runtime::cache::{Cache, IndexId, IndexValue};
use shared::runtime::informer::{Informer, InformerBuilder, Need, Needed};

use crate::objects::{Node, Pod};

/// The observation of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its key.
    pub key: Key,
    /// The pod; none if it is gone.
    pub pod: Option<Arc<Pod>>,
    /// The node that it is bound to; none if there is no such node.
    pub node: Option<Arc<Node>>,
    /// The pending deletion of a pod of this key, which may have been another one.
    pub pending: Option<Pending>,
}

/// The observation of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedNode {
    /// The node.
    pub node: Arc<Node>,
    /// Its pods, by key.
    pub pods: Vec<Observed>,
}

/// A deletion that was decided and has not succeeded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The pod.
    pub uid: Uid,
    /// When it is due.
    pub due: Timestamp,
    /// It was due, and people were told of it.
    pub is_announced: bool,
}

/// The caches of this operator.
pub struct Caches {
    /// All nodes.
    pub nodes: Arc<Cache<Node>>,
    /// The pods of nodes that end pods.
    pub pods: Arc<Cache<Pod>>,
    pods_by_node: IndexId,
    /// The pending deletions.
    pub evictions: Arc<Evictions>,
}

/// The informers that fill the caches, and the need for which pods are followed.
pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) need: Need,
}

/// The pending deletions, by pod.
///
/// Upstream: `TimedWorkerQueue`, `pkg/controller/tainteviction/timed_workers.go`.
pub struct Evictions {
    need: Need,
    entries: Mutex<BTreeMap<Key, Entry>>,
}

struct Entry {
    pending: Pending,
    /// A deletion stays pending when the pod's node is gone, and so the pod has to be followed.
    _needed: Needed,
}

impl Evictions {
    fn new(need: Need) -> Self {
        Self { need, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pending deletion of a pod of this key.
    pub fn get(&self, pod: &Key) -> Option<Pending> {
        self.entries().get(pod).map(|entry| entry.pending)
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Replaces the pending deletion of a pod on this node.
    pub(crate) fn remember(&self, pod: &Key, node: &str, pending: Pending) {
        let entry = Entry { pending, _needed: self.need.hold(node) };
        drop(self.entries().insert(pod.clone(), entry));
    }

    /// Drops the pending deletion of a pod of this key.
    pub(crate) fn forget(&self, pod: &Key) {
        drop(self.entries().remove(pod));
    }
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let mut nodes = InformerBuilder::<Node>::new().build();
        let need = nodes.need_by_name(Node::ends_pods);
        let mut pods = InformerBuilder::<Pod>::new();
        let pods_by_node = pods.index(|pod, emit| emit(IndexValue::Text(pod.node.clone())));
        let pods = pods.build();
        let evictions = Arc::new(Evictions::new(need.clone()));
        (Self { nodes: nodes.cache(), pods: pods.cache(), pods_by_node, evictions }, Informers { nodes, pods, need })
    }

    /// Whether pods may have to leave this node.
    pub(crate) fn ends_pods(&self, node: &Text) -> bool {
        self.node(node).is_some_and(|node| node.ends_pods())
    }

    fn node(&self, name: &Text) -> Option<Arc<Node>> {
        if name.is_empty() { None } else { self.nodes.get(&Key::new("", name)) }
    }

    /// Reads the pod of this key; none if it is gone and has no pending deletion.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (pod, pending) = (self.pods.get(key), self.evictions.get(key));
        let node = pod.as_ref().and_then(|pod| self.node(&pod.node));
        (pod.is_some() || pending.is_some()).then(|| Observed { key: key.clone(), pod, node, pending })
    }

    /// Reads the node of this key; none if it is gone.
    pub fn observe_node(&self, key: &Key) -> Option<ObservedNode> {
        let node = self.nodes.get(key)?;
        let pods = self.pods.by_index(self.pods_by_node, &IndexValue::Text(Text::new(key.name())));
        let observed = pods.into_iter().map(|pod| {
            let key = pod.metadata.key.clone();
            Observed { pending: self.evictions.get(&key), key, node: Some(Arc::clone(&node)), pod: Some(pod) }
        });
        let pods = observed.collect();
        Some(ObservedNode { node, pods })
    }
}
