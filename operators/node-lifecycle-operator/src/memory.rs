//! The state of nodes and zones, remembered between syncs: when a node was last heard from, its turn to be tainted, and
//! the zones at the last look.
//!
//! All times are this process's own: a node was heard from when a change of its Lease or status was seen. The memory is
//! empty when work begins, so a start or a takeover gives each node its whole grace period. `Memory::follow` notes what
//! the watches show; everything else is written by `apply`.

pub mod rate_limited_queue;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::following::cache::Change;
use shared::following::informer::Informer;
use shared::working::context::ControllerContext;

use crate::objects::{Condition, Lease, Node, READY};
use rate_limited_queue::Limiter;

/// The memory of a node.
///
/// Upstream: `nodeHealthData` and `knownNodeSet`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub uid: Uid,
    /// When it was last heard from.
    pub heard: Timestamp,
    pub is_registered: bool,
    pub turn: Turn,
}

/// The place of a node in the queue of its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    None,
    Waits {
        /// Since when; the first in the queue is served first.
        since: Timestamp,
    },
    Now,
}

/// The zones at the last look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zones {
    pub zones: BTreeMap<Text, Zone>,
    pub is_all_disrupted: bool,
    pub looked: Option<Look>,
    /// The looks in a row, up to the last one, after which nobody was judged.
    pub gaps: Option<Gaps>,
}

/// Looks in a row after each of which nobody was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// When the first was.
    pub since: Timestamp,
    /// Whether it was reported that they outlast a grace period.
    pub is_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// How many nodes count.
    pub size: usize,
    /// How many of these are not ready.
    pub unhealthy: usize,
    pub state: ZoneState,
    pub limiter: Limiter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ZoneState {
    /// Few of its nodes are not ready.
    Normal,
    /// Many of its nodes are not ready.
    PartialDisruption,
    /// None of its nodes is ready.
    FullDisruption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub at: Timestamp,
    pub is_followed: bool,
}

/// The memory; empty at first.
#[derive(Default)]
pub struct Memory(Mutex<State>);

#[derive(Default)]
struct State {
    nodes: BTreeMap<Key, Known>,
    zones: Zones,
    /// The nodes whose pods are marked, with the loss for which they are.
    marked: BTreeMap<Key, Loss>,
}

/// A loss of a node: its uid, and when it was lost.
type Loss = (Uid, Option<Time>);

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn known(&self, node: &Key) -> Option<Known> {
        self.state().nodes.get(node).copied()
    }

    /// The zones at the last look.
    pub fn zones(&self) -> Zones {
        self.state().zones.clone()
    }

    pub fn looked(&self) -> Option<Look> {
        self.state().zones.looked
    }

    pub fn is_all_disrupted(&self) -> bool {
        self.state().zones.is_all_disrupted
    }

    /// Whether the pods of this node were marked for its current loss.
    pub fn is_marked(&self, node: &Node) -> bool {
        self.state().marked.get(&node.metadata.key) == Some(&loss(node))
    }

    /// Notes what the watches of nodes and Leases show, before the handlers that are added later.
    pub(crate) fn follow(
        self: &Arc<Self>,
        nodes: &mut Informer<Node>,
        leases: &mut Informer<Lease>,
        ctx: &ControllerContext,
    ) {
        let (memory, clock) = (Arc::clone(self), ctx.clone());
        nodes.on_change(move |change| memory.note_node(&change, clock.now()));
        let (memory, clock) = (Arc::clone(self), ctx.clone());
        leases.on_change(move |change| memory.note_lease(&change, clock.now()));
    }

    fn note_node(&self, change: &Change<'_, Node>, now: Timestamp) {
        let (old, node) = match change {
            Change::Added(node) => (None, node),
            Change::Updated { old, new } => (Some(old), new),
            // Its sync reports the removal first, and then forgets it.
            Change::Deleted(_) => return,
        };
        let (mut state, uid) = (self.state(), node.metadata.uid);
        let known = state.nodes.get_mut(&node.metadata.key).filter(|known| known.uid == uid);
        match (known, old) {
            (Some(known), Some(old)) if is_heartbeat(old, node) => known.heard = now,
            (Some(_), _) => {}
            (None, _) => {
                let known = Known { uid, heard: now, is_registered: false, turn: Turn::None };
                state.nodes.insert(node.metadata.key.clone(), known);
            }
        }
    }

    /// Upstream: `tryUpdateNodeHealth`, for which a Lease that it sees for the first time counts as renewed.
    fn note_lease(&self, change: &Change<'_, Lease>, now: Timestamp) {
        let is_renewed = match change {
            Change::Added(_) => true,
            Change::Updated { old, new } => new.renewed > old.renewed,
            Change::Deleted(_) => false,
        };
        if is_renewed {
            self.hear(&Key::new("", change.latest().metadata.name()), now);
        }
    }

    pub(crate) fn hear(&self, node: &Key, now: Timestamp) {
        if let Some(known) = self.state().nodes.get_mut(node) {
            known.heard = now;
        }
    }

    pub(crate) fn register(&self, node: &Key, uid: Uid) {
        if let Some(known) = self.state().nodes.get_mut(node).filter(|known| known.uid == uid) {
            known.is_registered = true;
        }
    }

    pub(crate) fn end_turn(&self, node: &Key) {
        if let Some(known) = self.state().nodes.get_mut(node) {
            known.turn = Turn::None;
        }
    }

    pub(crate) fn forget(&self, node: &Key, uid: Uid) {
        let mut state = self.state();
        if state.nodes.get(node).is_some_and(|known| known.uid == uid) {
            state.nodes.remove(node);
        }
        if state.marked.get(node).is_some_and(|(marked, _)| *marked == uid) {
            state.marked.remove(node);
        }
    }

    /// The pods of this node are marked. It may be gone by now, and nothing would forget the mark.
    pub(crate) fn mark(&self, node: &Node) {
        let (mut state, key, loss) = (self.state(), &node.metadata.key, loss(node));
        if state.nodes.get(key).is_some_and(|known| known.uid == node.metadata.uid) {
            state.marked.insert(key.clone(), loss);
        }
    }

    /// Stores a look: the zones, the turns that have changed, and whether all grace periods start over.
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

fn loss(node: &Node) -> Loss {
    (node.metadata.uid, node.condition(READY).and_then(|ready| ready.transition))
}

/// Whether the kubelet of this node has written its status. This operator's own writes do not count.
///
/// Upstream: `tryUpdateNodeHealth`.
fn is_heartbeat(old: &Node, new: &Node) -> bool {
    let heartbeat = |ready: &Condition| ready.heartbeat;
    match (old.condition(READY), new.condition(READY)) {
        (None, None) => false,
        (None, Some(new)) => !new.is_by_us(),
        (Some(_), None) => true,
        (Some(old), Some(new)) => heartbeat(old) != heartbeat(new),
    }
}

impl fmt::Display for ZoneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "Normal",
            Self::PartialDisruption => "PartialDisruption",
            Self::FullDisruption => "FullDisruption",
        })
    }
}

#[cfg(test)]
mod tests {
    use shared::testing::{NOW, object};

    use super::*;

    #[test]
    fn a_mark_goes_with_its_node_and_none_is_made_afterwards() {
        let node = object("v1", "Node", "a").namespace("").build::<Node>();
        let (memory, meta) = (Memory::default(), &node.metadata);
        memory.note_node(&Change::Added(&node), NOW);
        memory.mark(&node);
        assert!(memory.is_marked(&node));
        memory.forget(&meta.key, meta.uid);
        assert!(!memory.is_marked(&node));
        memory.mark(&node);
        assert!(!memory.is_marked(&node));
    }
}
