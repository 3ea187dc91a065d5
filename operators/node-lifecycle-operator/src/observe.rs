//! Reads a node with the memory of it, or all nodes with the memory of their zones.
//!
//! Left out: pods, which are listed when they have to be marked, and the Leases' own times: a node was heard of when
//! this process saw that something had changed.

pub mod memory;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::object::Key;
use shared::api::resource::{LEASES, PODS};
use shared::runtime::cache::Cache;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};
use shared::runtime::informer::{Health, Informer, InformerBuilder};

use crate::objects::{Lease, NODE_LEASES, Node, Pod};
use crate::plan::Config;
use crate::plan::gap::{Look, gap};
use memory::{Known, Memory, Zones};

/// A Lease watch that is younger than this is not started again.
const WATCH_AGE: Duration = Duration::from_secs(5);

/// The observation of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its key.
    pub key: Key,
    /// The node; none if it is gone.
    pub node: Option<Arc<Node>>,
    /// The memory of a node of this key, which may have been another one.
    pub known: Option<Known>,
    /// When its Lease was renewed, as the cache has it.
    pub renewed: Option<Timestamp>,
    /// Whether no zone has a node that is ready.
    pub is_all_disrupted: bool,
}

/// The observation of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRound {
    /// All nodes, by name.
    pub nodes: Vec<Observed>,
    /// Their zones, as the round before has left them.
    pub zones: Zones,
    /// Whether nodes and Leases are followed at this moment.
    pub is_followed: bool,
}

/// The observation of a node whose pods may have to be marked.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPods {
    /// The node.
    pub node: Arc<Node>,
    /// Whether its pods were marked since it was lost.
    pub is_marked: bool,
}

/// The caches of this operator.
pub struct Caches {
    /// All nodes.
    pub nodes: Arc<Cache<Node>>,
    /// The Leases of nodes.
    pub leases: Arc<Cache<Lease>>,
    /// The memory of nodes and zones.
    pub memory: Memory,
    nodes_health: Arc<Health>,
    leases_health: Arc<Health>,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
    pub(crate) leases: Informer<Lease>,
}

impl Observed {
    /// The same node, heard of at this moment.
    #[must_use]
    pub fn heard_at(mut self, now: Timestamp) -> Self {
        if let Some(known) = &mut self.known {
            known.heard = now;
        }
        self
    }
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let nodes = InformerBuilder::<Node>::new().build();
        let leases = InformerBuilder::<Lease>::new().namespace(NODE_LEASES).build();
        let caches = Self {
            nodes: nodes.cache(),
            leases: leases.cache(),
            memory: Memory::default(),
            nodes_health: nodes.health(),
            leases_health: leases.health(),
        };
        (caches, Informers { nodes, leases })
    }

    /// Reads the node of this key; none if it is gone, and nothing is remembered of it.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (node, known) = (self.nodes.get(key), self.memory.known(key));
        (node.is_some() || known.is_some()).then(|| Observed {
            renewed: self.leases.get(&lease_key(key)).and_then(|lease| lease.renewed),
            is_all_disrupted: self.memory.is_all_disrupted(),
            key: key.clone(),
            node,
            known,
        })
    }

    /// The same, heard of at this moment where there is a gap that the next look would find: nobody is judged before it.
    pub fn observe_to_judge(&self, key: &Key, config: &Config, now: Timestamp) -> Option<Observed> {
        let look = Look { at: now, is_followed: self.is_followed() };
        let has_gap = gap(self.memory.looked(), look, config).is_some();
        self.observe(key).map(|observed| if has_gap { observed.heard_at(now) } else { observed })
    }

    fn is_followed(&self) -> bool {
        self.nodes_health.failing().is_none() && self.leases_health.failing().is_none()
    }

    /// Reads all nodes.
    pub fn observe_round(&self) -> ObservedRound {
        let nodes = self.nodes.all();
        ObservedRound {
            nodes: nodes.iter().filter_map(|node| self.observe(&node.metadata.key)).collect(),
            zones: self.memory.zones(),
            is_followed: self.is_followed(),
        }
    }

    /// The apiserver has renewals that the cache lacks: the watch may stand still.
    pub(crate) fn catch_up(&self) {
        // Many may be found behind at once.
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
    match control.get::<Lease>(&LEASES, &lease_key(node)).await {
        Ok(lease) => Ok(lease.renewed),
        // Any other 404 says nothing of the Lease.
        Err(error) if error.is_object_not_found() => Ok(None),
        Err(error) => Err(error).context("read the node's Lease anew"),
    }
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
    control.list_each(&PODS, "", selection, Accept::Object, each).await.context("list the node's pods")?;
    Ok(pods)
}

#[cfg(test)]
mod tests {
    use shared::runtime::cache::Change;
    use shared::testing::{NOW, object};

    use super::*;

    #[test]
    fn nobody_is_judged_after_a_gap_that_no_look_has_found_yet() {
        let config = Config {
            period: Duration::from_secs(5),
            grace: Duration::from_secs(50),
            startup_grace: Duration::from_secs(60),
            rate: 0.1,
            secondary_rate: 0.01,
            large_zone: 50,
            unhealthy_threshold: 0.55,
        };
        let (caches, _) = Caches::new();
        let node: Arc<Node> = object("v1", "Node", "a").build();
        caches.memory.note_node(&Change::Added(&node), NOW);
        let looked = Some(Look { at: NOW, is_followed: true });
        caches.memory.look(Zones { looked, ..Zones::default() }, &[], None);
        let heard = |seconds| {
            let now = NOW + Duration::from_secs(seconds);
            let observed = caches.observe_to_judge(&node.metadata.key, &config, now);
            observed.and_then(|observed| observed.known).map(|known| known.heard.duration_since(NOW).as_secs())
        };
        assert_eq!([heard(20), heard(600)], [Some(0), Some(600)]);
    }
}
