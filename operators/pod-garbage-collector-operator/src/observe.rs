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

use crate::objects::{NODES, Node, Pod};

/// All there is.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// All pods, by key.
    pub pods: Vec<Arc<Pod>>,
    /// All nodes, by name.
    pub nodes: Vec<Arc<Node>>,
    /// The nodes with pods being deleted that are out of service, as just read.
    pub out_of_service: BTreeSet<Text>,
}

/// A node that was missing for as long as a missing node is waited for.
#[derive(Clone, Debug)]
pub struct MissingNode {
    /// The cache has it again.
    pub is_cached: bool,
    /// The apiserver has it; not asked where that makes no difference.
    pub exists: bool,
    /// The pods that are bound to it.
    pub pods: Vec<Arc<Pod>>,
}

/// Where to read.
pub(crate) struct Sources {
    pub(crate) pods: Arc<Cache<Pod>>,
    pub(crate) nodes: Arc<Cache<Node>>,
    pub(crate) control: Control,
}

impl Sources {
    /// For a round.
    pub(crate) async fn observe(&self) -> Observed {
        let (pods, nodes) = (self.pods.all(), self.nodes.all());
        let suspected: BTreeSet<&str> =
            nodes.iter().filter(|node| node.is_out_of_service()).map(|node| node.metadata.name()).collect();
        let being_deleted = pods.iter().filter(|pod| pod.metadata.is_being_deleted());
        let concerned: BTreeSet<Text> =
            being_deleted.filter(|pod| suspected.contains(pod.node.as_str())).map(|pod| pod.node.clone()).collect();
        let mut out_of_service = BTreeSet::new();
        for node in concerned {
            match self.live(&Key::new("", &node)).await {
                Ok(Some(live)) if live.is_out_of_service() => drop(out_of_service.insert(node)),
                // Its pods are left alone for this round.
                Ok(Some(_) | None) => {}
                Err(error) => tracing::warn!(%node, error = format!("{error:#}"), "cannot read the node"),
            }
        }
        Observed { pods, nodes, out_of_service }
    }

    /// For a node that was missing.
    pub(crate) async fn observe_missing(&self, node: &Key) -> anyhow::Result<MissingNode> {
        let is_cached = self.nodes.get(node).is_some();
        let mut pods = if is_cached { Vec::new() } else { self.pods.all() };
        pods.retain(|pod| pod.node == node.name());
        let exists = pods.is_empty() || self.live(node).await?.is_some();
        Ok(MissingNode { is_cached, exists, pods })
    }

    /// Upstream: `checkIfNodeExists`, `pkg/controller/podgc/gc_controller.go`.
    async fn live(&self, node: &Key) -> anyhow::Result<Option<Node>> {
        match self.control.get(&NODES, node).await {
            Ok(node) => Ok(Some(node)),
            // Any other 404 says nothing of the node.
            Err(error) if error.is_object_not_found() => Ok(None),
            Err(error) => Err(error).context("read the node anew"),
        }
    }
}
