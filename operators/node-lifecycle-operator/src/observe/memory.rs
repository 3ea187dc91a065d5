//! The memory of nodes and zones: when a node was last heard of, whose turn it is to be tainted, and how the zones are.
//!
//! All times are this process's own: a node was heard of when its Lease or its status was seen to have changed. The
//! memory is empty when work begins, so a start, a hand-over and a standby's promotion give each node its whole grace
//! period. Left out: the memory of a former process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::runtime::cache::Change;

use crate::objects::{Condition, Lease, Node, READY};
use crate::plan::disruption::Zone;
use crate::plan::gap::Look;

/// The memory of a node.
///
/// Upstream: `nodeHealthData` and `knownNodeSet`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The node.
    pub uid: Uid,
    /// When it was last heard of.
    pub heard: Timestamp,
    /// Whether people were told of it.
    pub is_registered: bool,
    /// Whether it is its turn to be tainted.
    pub turn: Turn,
}

/// The place of a node in the queue of its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It does not wait.
    None,
    /// It waits.
    Waits {
        /// Since then; the first come are the first served.
        since: Timestamp,
    },
    /// It is its turn.
    Now,
}

/// How the zones were at the last look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zones {
    /// Those that have nodes.
    pub zones: BTreeMap<Text, Zone>,
    /// Whether no zone has a node that is ready.
    pub is_all_disrupted: bool,
    /// The last look.
    pub looked: Option<Look>,
}

/// The memory; empty at first.
#[derive(Default)]
pub struct Memory(Mutex<State>);

#[derive(Default)]
struct State {
    nodes: BTreeMap<Key, Known>,
    zones: Zones,
    /// The nodes whose pods are marked, and since when each was lost.
    marked: BTreeMap<Key, (Uid, Option<Time>)>,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory of a node of this key.
    pub fn known(&self, node: &Key) -> Option<Known> {
        self.state().nodes.get(node).copied()
    }

    /// How the zones were at the last look.
    pub fn zones(&self) -> Zones {
        self.state().zones.clone()
    }

    /// The last look.
    pub fn looked(&self) -> Option<Look> {
        self.state().zones.looked
    }

    /// Whether no zone had a node that was ready.
    pub fn is_all_disrupted(&self) -> bool {
        self.state().zones.is_all_disrupted
    }

    /// Whether the pods of this node were marked since it was lost.
    pub fn is_marked(&self, node: &Node) -> bool {
        self.state().marked.get(&node.metadata.key) == Some(&loss(node))
    }

    /// Takes in a change of a node.
    pub(crate) fn note_node(&self, change: &Change<'_, Node>, now: Timestamp) {
        let (old, node) = match change {
            Change::Added(node) => (None, node),
            Change::Updated { old, new } => (Some(old), new),
            // People are told of it first.
            Change::Deleted(_) => return,
        };
        let (mut state, uid) = (self.state(), node.metadata.uid);
        let known = state.nodes.get_mut(&node.metadata.key).filter(|known| known.uid == uid);
        match (known, old) {
            (Some(known), Some(old)) if is_sign(old, node) => known.heard = now,
            (Some(_), _) => {}
            (None, _) => {
                let known = Known { uid, heard: now, is_registered: false, turn: Turn::None };
                state.nodes.insert(node.metadata.key.clone(), known);
            }
        }
    }

    /// Takes in a change of a Lease.
    ///
    /// Upstream: `tryUpdateNodeHealth`, for which a Lease that it sees for the first time is a sign of life too.
    pub(crate) fn note_lease(&self, change: &Change<'_, Lease>, now: Timestamp) {
        let is_renewed = match change {
            Change::Added(_) => true,
            Change::Updated { old, new } => new.renewed > old.renewed,
            Change::Deleted(_) => false,
        };
        let node = Key::new("", change.latest().metadata.name());
        if is_renewed && let Some(known) = self.state().nodes.get_mut(&node) {
            known.heard = now;
        }
    }

    /// A live read has shown that this node is there, or may be.
    pub(crate) fn hear(&self, node: &Key, now: Timestamp) {
        if let Some(known) = self.state().nodes.get_mut(node) {
            known.heard = now;
        }
    }

    /// People were told of this node.
    pub(crate) fn register(&self, node: &Key, uid: Uid) {
        if let Some(known) = self.state().nodes.get_mut(node).filter(|known| known.uid == uid) {
            known.is_registered = true;
        }
    }

    /// Its turn is over.
    pub(crate) fn had_its_turn(&self, node: &Key) {
        if let Some(known) = self.state().nodes.get_mut(node) {
            known.turn = Turn::None;
        }
    }

    /// The node of this uid is gone.
    pub(crate) fn forget(&self, node: &Key, uid: Uid) {
        let mut state = self.state();
        if state.nodes.get(node).is_some_and(|known| known.uid == uid) {
            state.nodes.remove(node);
        }
        if state.marked.get(node).is_some_and(|(marked, _)| *marked == uid) {
            state.marked.remove(node);
        }
    }

    /// The pods of this node are marked.
    pub(crate) fn mark(&self, node: &Node) {
        self.state().marked.insert(node.metadata.key.clone(), loss(node));
    }

    /// Takes in a look: the zones, turns that have changed, and whether each node gets its whole grace period again.
    pub(crate) fn look(&self, zones: Zones, turns: &[(Key, Turn)], start_over: Option<Timestamp>) {
        let mut state = self.state();
        state.zones = zones;
        for (node, turn) in turns {
            if let Some(known) = state.nodes.get_mut(node) {
                known.turn = *turn;
            }
        }
        if let Some(now) = start_over {
            for known in state.nodes.values_mut() {
                known.heard = now;
            }
        }
    }
}

/// Which loss of a node this is.
fn loss(node: &Node) -> (Uid, Option<Time>) {
    (node.metadata.uid, node.condition(READY).and_then(|ready| ready.transition))
}

/// Whether the kubelet of this node has written its status. What this operator writes is no sign of life.
///
/// Upstream: `tryUpdateNodeHealth`.
fn is_sign(old: &Node, new: &Node) -> bool {
    let heartbeat = |ready: &Condition| ready.heartbeat;
    match (old.condition(READY), new.condition(READY)) {
        (None, None) => false,
        (None, Some(new)) => !new.is_by_us(),
        (Some(_), None) => true,
        (Some(old), Some(new)) => heartbeat(old) != heartbeat(new),
    }
}
