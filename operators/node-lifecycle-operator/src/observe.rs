//! Reads a node with its memory, or all nodes with the memory of their zones.
//!
//! Pods are listed live when they have to be marked. The times in Leases are only compared with their former values,
//! because the clock of a node may be wrong.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::object::Key;
use shared::api::resource::{LEASES, PODS};
use shared::following::cache::Cache;
use shared::following::informer::{Health, Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::memory::{Known, Look, Memory, Zones};
use crate::objects::{Lease, NODE_LEASES, Node, Pod};

/// A Lease watch that is younger than this is not restarted.
const WATCH_AGE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub key: Key,
    pub node: Option<Arc<Node>>,
    /// The memory of a node of this key, which may be a former one.
    pub known: Option<Known>,
    /// When its Lease was renewed, as the cache has it.
    pub renewed: Option<Timestamp>,
    /// Whether no zone had a ready node at the last look.
    pub is_all_disrupted: bool,
    /// The last look at all nodes.
    pub looked: Option<Look>,
    /// Whether the watches of nodes and Leases work now.
    pub is_followed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRound {
    pub nodes: Vec<Observed>,
    /// The zones at the last look.
    pub zones: Zones,
    /// Whether the watches of nodes and Leases work now.
    pub is_followed: bool,
}

/// The observation of a node whose pods may have to be marked.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPods {
    pub node: Arc<Node>,
    /// Whether its pods were marked for its current loss.
    pub is_marked: bool,
}

pub struct Caches {
    pub nodes: Arc<Cache<Node>>,
    pub leases: Arc<Cache<Lease>>,
    pub memory: Arc<Memory>,
    nodes_health: Arc<Health>,
    leases_health: Arc<Health>,
}

pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
    pub(crate) leases: Informer<Lease>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let nodes = InformerBuilder::<Node>::new().build();
        let leases = InformerBuilder::<Lease>::new().namespace(NODE_LEASES).build();
        let caches = Self {
            nodes: nodes.cache(),
            leases: leases.cache(),
            memory: Arc::default(),
            nodes_health: nodes.health(),
            leases_health: leases.health(),
        };
        (caches, Informers { nodes, leases })
    }

    /// Reads the node of this key; none if it is gone and has no memory.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (node, known) = (self.nodes.get(key), self.memory.known(key));
        (node.is_some() || known.is_some()).then(|| Observed {
            renewed: self.leases.get(&lease_key(key)).and_then(|lease| lease.renewed),
            is_all_disrupted: self.memory.is_all_disrupted(),
            looked: self.memory.looked(),
            is_followed: self.is_followed(),
            key: key.clone(),
            node,
            known,
        })
    }

    fn is_followed(&self) -> bool {
        self.nodes_health.failing().is_none() && self.leases_health.failing().is_none()
    }

    pub fn observe_round(&self) -> ObservedRound {
        let nodes = self.nodes.all();
        ObservedRound {
            nodes: nodes.iter().filter_map(|node| self.observe(&node.metadata.key)).collect(),
            zones: self.memory.zones(),
            is_followed: self.is_followed(),
        }
    }

    /// Restarts the watch of Leases, which lags behind the apiserver, unless it is young: many Leases may be found behind
    /// at once.
    pub(crate) fn catch_up(&self) {
        self.leases_health.reconnect_older(WATCH_AGE);
    }

    /// Reads the node of this key, whose pods may have to be marked; none if it is gone.
    pub fn observe_pods(&self, key: &Key) -> Option<ObservedPods> {
        let node = self.nodes.get(key)?;
        Some(ObservedPods { is_marked: self.memory.is_marked(&node), node })
    }
}

fn lease_key(node: &Key) -> Key {
    Key::new(NODE_LEASES, node.name())
}

/// When the Lease of a node was renewed, as the apiserver has it.
pub(crate) async fn live_renewed(control: &Control, node: &Key) -> anyhow::Result<Option<Timestamp>> {
    let read = control.get::<Lease>(&LEASES, &lease_key(node)).await.unless_absent();
    Ok(read.context("cannot read the node's Lease")?.and_then(|lease| lease.renewed))
}

/// The pods of a node that may be ready.
pub(crate) async fn live_pods(control: &Control, node: &Key) -> anyhow::Result<Vec<Arc<Pod>>> {
    let fields = format!("spec.nodeName={}", node.name());
    let (selection, mut pods) = (Selection { field_selector: &fields, ..Selection::default() }, Vec::new());
    let each = |pod: Pod| {
        if pod.may_be_ready {
            pods.push(Arc::new(pod));
        }
    };
    control.list_each(&PODS, "", selection, Accept::Object, each).await.context("cannot list the node's pods")?;
    Ok(pods)
}
