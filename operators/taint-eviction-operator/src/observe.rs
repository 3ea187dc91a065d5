//! Reads a pod with its node and its pending deletion, or a node with its pods.
//!
//! Each write carries the uid of the pod that it was decided on. Only the node is read live, before the first eviction that
//! no user's change explains: its taints may have gone while a watch stood still.

use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::following::answers::Answers;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder, Need};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::memory::{Evictions, Pending};
use crate::objects::{Node, Pod};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub key: Key,
    pub pod: Option<Arc<Pod>>,
    /// The node that it is bound to; none if that does not exist.
    pub node: Option<Arc<Node>>,
    /// The pending deletion of a pod of this key, which may be a former one.
    pub pending: Option<Pending>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedNode {
    pub node: Arc<Node>,
    pub pods: Vec<Observed>,
}

pub struct Caches {
    pub nodes: Arc<Cache<Node>>,
    /// The pods of nodes with `NoExecute` taints, and those with a pending deletion.
    pub pods: Arc<Cache<Pod>>,
    pods_by_node: IndexId,
    pub evictions: Arc<Evictions>,
    live_nodes: Answers<Text, Option<Arc<Node>>>,
}

pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) need: Need,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let mut nodes = InformerBuilder::<Node>::new().build();
        let need = nodes.need_by_name(Node::evicts_pods);
        let mut pods = InformerBuilder::<Pod>::new();
        let pods_by_node = pods.index(|pod, emit| emit(IndexValue::Text(pod.node.clone())));
        let pods = pods.build();
        let evictions = Arc::new(Evictions::new(need.clone()));
        let (cached, live_nodes) = ((nodes.cache(), pods.cache()), Answers::default());
        let caches = Self { nodes: cached.0, pods: cached.1, pods_by_node, evictions, live_nodes };
        (caches, Informers { nodes, pods, need })
    }

    /// Whether this node has `NoExecute` taints.
    pub(crate) fn evicts_pods(&self, node: &Text) -> bool {
        self.node(node).is_some_and(|node| node.evicts_pods())
    }

    fn node(&self, name: &Text) -> Option<Arc<Node>> {
        if name.is_empty() { None } else { self.nodes.get(&Key::new("", name)) }
    }

    /// Reads the pod of this key; none if it is gone and has no pending deletion.
    pub fn observe(&self, key: &Key, now: Timestamp) -> Option<Observed> {
        let (pod, pending) = (self.pods.get(key), self.evictions.get(key, now));
        let node = pod.as_ref().and_then(|pod| self.node(&pod.node));
        (pod.is_some() || pending.is_some()).then(|| Observed { key: key.clone(), pod, node, pending })
    }

    pub fn observe_node(&self, key: &Key, now: Timestamp) -> Option<ObservedNode> {
        let node = self.nodes.get(key)?;
        let pods = self.pods.by_index(self.pods_by_node, &IndexValue::Text(Text::new(key.name())));
        let observed = pods.into_iter().map(|pod| {
            let key = pod.metadata.key.clone();
            Observed { pending: self.evictions.get(&key, now), key, node: Some(Arc::clone(&node)), pod: Some(pod) }
        });
        let pods = observed.collect();
        Some(ObservedNode { node, pods })
    }

    /// The node of this pod as the apiserver has it. One read is for all pods of the node.
    pub(crate) async fn live_node(&self, control: &Control, observed: &Observed) -> anyhow::Result<Option<Arc<Node>>> {
        let Some(pod) = &observed.pod else { return Ok(None) };
        let version = observed.node.as_ref().map(|node| node.metadata.resource_version).unwrap_or_default();
        let read = live_node(control, &pod.node);
        self.live_nodes.ask(&pod.node, version, self.nodes.progress(), read).await
    }
}

async fn live_node(control: &Control, name: &str) -> anyhow::Result<Option<Arc<Node>>> {
    let read = control.get(&NODES, &Key::new("", name)).await.unless_absent();
    Ok(read.context("cannot read the node")?.map(Arc::new))
}
