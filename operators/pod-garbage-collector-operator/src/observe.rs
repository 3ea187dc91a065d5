//! Reads all pods and nodes from the caches; and anew each node whose pods are to be deleted because of its state.
//!
//! What a pod is cannot change back: an ended one stays ended, one being deleted stays so, and a bound one stays where it
//! is. A node can come back. Left out: reading pods anew; each delete names the uid that it means.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::runtime::cache::Cache;
use shared::runtime::control::Control;
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{NODES, Node, Pod};

/// All there is.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The key of the round.
    pub key: Key,
    /// All pods, by key.
    pub pods: Vec<Arc<Pod>>,
    /// All nodes, by name.
    pub nodes: Vec<Arc<Node>>,
    /// The nodes with pods being deleted that are out of service; in a plan, as just read.
    pub out_of_service: BTreeSet<Text>,
}

/// A node that was missing for as long as a missing node is waited for.
#[derive(Clone, Debug)]
pub struct MissingNode {
    /// The key of the node.
    pub key: Key,
    /// The cache has it again.
    pub is_cached: bool,
    /// The apiserver has it, or was not asked because that makes no difference.
    pub exists: bool,
    /// The pods that are bound to it.
    pub pods: Vec<Arc<Pod>>,
}

/// What this operator follows.
pub struct Caches {
    /// All pods.
    pub pods: Arc<Cache<Pod>>,
    /// All nodes.
    pub nodes: Arc<Cache<Node>>,
}

/// What fills the caches.
pub(crate) struct Informers {
    pub(crate) pods: Informer<Pod>,
    pub(crate) nodes: Informer<Node>,
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let (pods, nodes) = (InformerBuilder::new().build(), InformerBuilder::new().build());
        (Self { pods: pods.cache(), nodes: nodes.cache() }, Informers { pods, nodes })
    }

    /// Reads everything, for the round of this key.
    pub fn observe(&self, key: &Key) -> Observed {
        let (pods, nodes) = (self.pods.all(), self.nodes.all());
        let suspected: BTreeSet<&str> =
            nodes.iter().filter(|node| node.is_out_of_service()).map(|node| node.metadata.name()).collect();
        let being_deleted = pods.iter().filter(|pod| pod.metadata.is_being_deleted());
        let out_of_service =
            being_deleted.filter(|pod| suspected.contains(pod.node.as_str())).map(|pod| pod.node.clone()).collect();
        Observed { key: key.clone(), pods, nodes, out_of_service }
    }

    /// Reads the node of this key, which was missing, and its pods.
    pub fn observe_missing(&self, key: &Key) -> MissingNode {
        let is_cached = self.nodes.get(key).is_some();
        let mut pods = if is_cached { Vec::new() } else { self.pods.all() };
        pods.retain(|pod| pod.node == key.name());
        MissingNode { key: key.clone(), is_cached, exists: true, pods }
    }
}

/// The same, with the nodes that are out of service at the apiserver too. The pods of one that cannot be read are left
/// alone for this round.
pub(crate) async fn live_out_of_service(control: &Control, observed: Observed) -> Observed {
    let mut out_of_service = BTreeSet::new();
    for node in &observed.out_of_service {
        match live_node(control, &Key::new("", node)).await {
            Ok(Some(live)) if live.is_out_of_service() => drop(out_of_service.insert(node.clone())),
            Ok(Some(_) | None) => {}
            Err(error) => tracing::warn!(%node, error = format!("{error:#}"), "cannot read the node"),
        }
    }
    Observed { out_of_service, ..observed }
}

/// The same; if pods depend on it, the apiserver is asked for the node.
pub(crate) async fn live_missing_node(control: &Control, observed: MissingNode) -> anyhow::Result<MissingNode> {
    let exists = observed.pods.is_empty() || live_node(control, &observed.key).await?.is_some();
    Ok(MissingNode { exists, ..observed })
}

/// Upstream: `checkIfNodeExists`, `pkg/controller/podgc/gc_controller.go`.
async fn live_node(control: &Control, node: &Key) -> anyhow::Result<Option<Node>> {
    match control.get(&NODES, node).await {
        Ok(node) => Ok(Some(node)),
        // Any other 404 says nothing of the node.
        Err(error) if error.is_object_not_found() => Ok(None),
        Err(error) => Err(error).context("read the node anew"),
    }
}
