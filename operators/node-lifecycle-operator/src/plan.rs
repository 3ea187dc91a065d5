//! Which conditions, taints and labels a node has to have, by the node and the memory of it.
//!
//! A node is judged by the time since this process last heard from its kubelet. [`pods`] decides about its pods;
//! taint-eviction-controller evicts them.
//!
//! Upstream: `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.

mod config;
pub mod disruption;
pub mod gap;
pub mod pods;
mod reasons;
pub mod round;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::condition::UNKNOWN;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::Uid;
use shared::api::taint::{KnownTaint, NOT_READY, UNREACHABLE};
use shared::api::time::Time;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::memory::{Known, Look, Turn};
use crate::objects::{Node, OF_KUBELET, Ready};
use crate::observe::Observed;
pub use config::Config;
use gap::gap;
pub use reasons::{Leaving, PodsReason, Question, Reason, RoundReason};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub registration: Option<Registration>,
    /// Its conditions or its taints change. Conditions come first, because taints follow from them.
    pub change: Change,
    pub labels: Vec<(&'static str, Text)>,
    pub reason: Reason,
}

/// A change of the nodes that this process knows, which an event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    Add { uid: Uid },
    Remove { uid: Uid, was_reported: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    Silence { conditions: Vec<&'static str>, was_ready: bool },
    Taint { add: Vec<KnownTaint>, remove: Vec<KnownTaint>, ends_turn: bool },
}

pub type Next<P> = decisions::Next<Question, P>;

/// The next stage for a node: its plan, but before it becomes Unknown its Lease is read live, because the cache may lag.
pub fn next(observed: &Observed, config: &Config, now: Timestamp) -> Next<Plan> {
    let plan = plan(observed, config, now);
    if !matches!(plan.change, Change::Silence { .. }) {
        return Next::Execute(plan);
    }
    let heard = Time::of(observed.known.map_or(now, |known| known.heard));
    Next::Ask(LiveRead { step: "read its lease", reason: Question::Renewed { heard } })
}

/// Decides about one node.
///
/// Upstream: `tryUpdateNodeHealth`, `processTaintBaseEviction`, `doNoScheduleTaintingPass` and `reconcileNodeLabels`.
pub fn plan(observed: &Observed, config: &Config, now: Timestamp) -> Plan {
    let Observed { key: _, node, known, renewed: _, is_all_disrupted: _, looked, is_followed } = observed;
    let Some(node) = node else {
        let remove = |Known { uid, is_registered, .. }| Registration::Remove { uid, was_reported: is_registered };
        let registration = known.map(remove);
        return Plan { registration, change: Change::None, labels: Vec::new(), reason: Reason::Gone };
    };
    let own = known.filter(|known| known.uid == node.metadata.uid);
    let is_new = own.is_none_or(|own| !own.is_registered);
    let registration = is_new.then_some(Registration::Add { uid: node.metadata.uid });
    // A new node was heard from now, and so was every node after a gap that the next look will find.
    let has_gap = gap(*looked, Look { at: now, is_followed: *is_followed }, config).is_some();
    let since = own.filter(|_| !has_gap).map_or(now, |own| own.heard);
    let is_silent = is_silent(node, since, config, now);
    let (labels, ready, heard) = (node.stale_labels(), node.ready(), Time::of(since));
    if is_silent && ready != Ready::Unknown {
        let is_other = |type_: &&str| node.condition(type_).is_none_or(|condition| condition.status != *UNKNOWN);
        let conditions = OF_KUBELET.into_iter().filter(is_other).collect();
        let change = Change::Silence { conditions, was_ready: ready == Ready::True };
        let reason = Reason::Silent { ready, heard, leaving: Leaving::No };
        return Plan { registration, change, labels, reason };
    }
    let (mut add, mut remove) = no_schedule(node);
    let (leaving, add_no_execute, remove_no_execute) = no_execute(observed, node);
    // If one taint replaces the other, the node needs no turn.
    let ends_turn = !add_no_execute.is_empty() && remove_no_execute.is_empty();
    add.extend(add_no_execute);
    remove.extend(remove_no_execute);
    let is_right = add.is_empty() && remove.is_empty();
    let change = if is_right { Change::None } else { Change::Taint { add, remove, ends_turn } };
    let reason =
        if is_silent { Reason::Silent { ready, heard, leaving } } else { Reason::Heard { ready, heard, leaving } };
    Plan { registration, change, labels, reason }
}

/// Whether a node was not heard from for its grace period.
fn is_silent(node: &Node, heard: Timestamp, config: &Config, now: Timestamp) -> bool {
    let grace = if node.ready() == Ready::Missing { config.startup_grace } else { config.grace };
    Duration::try_from(now.duration_since(heard)).is_ok_and(|silent| silent > grace)
}

/// The `NoSchedule` taints to add, and those to remove.
fn no_schedule(node: &Node) -> (Vec<KnownTaint>, Vec<KnownTaint>) {
    let (wanted, has) = (node.asked_for(), node.kept_from_pods());
    let add = wanted.iter().copied().filter(|taint| !has.contains(taint)).collect();
    let remove = has.into_iter().filter(|taint| !wanted.contains(taint)).collect();
    (add, remove)
}

/// The `NoExecute` taints to add, and those to remove. One of the two replaces the other at once; a node that has neither
/// waits for its turn.
fn no_execute(observed: &Observed, node: &Node) -> (Leaving, Vec<KnownTaint>, Vec<KnownTaint>) {
    const TAINTS: [KnownTaint; 2] = [KnownTaint::no_execute(NOT_READY), KnownTaint::no_execute(UNREACHABLE)];
    let [not_ready, unreachable] = TAINTS;
    let none = Vec::new;
    let existing = || TAINTS.into_iter().filter(|taint| node.has(*taint)).collect::<Vec<_>>();
    let (wanted, opposite) = match node.ready() {
        Ready::Missing | Ready::Odd => return (Leaving::No, none(), none()),
        Ready::True => return (Leaving::No, none(), existing()),
        Ready::False | Ready::Unknown if observed.is_all_disrupted => {
            return (Leaving::AllDisrupted, none(), existing());
        }
        Ready::False => (not_ready, unreachable),
        Ready::Unknown => (unreachable, not_ready),
    };
    let add = || if node.has(wanted) { Vec::new() } else { vec![wanted] };
    if node.has(opposite) {
        return (Leaving::Yes, add(), vec![opposite]);
    }
    let is_its_turn = observed.known.is_some_and(|known| known.uid == node.metadata.uid && known.turn == Turn::Now);
    if node.has(wanted) || is_its_turn { (Leaving::Yes, add(), none()) } else { (Leaving::Waits, none(), none()) }
}

/// Whether a node needs a turn to be tainted.
pub(crate) fn waits_for_turn(observed: &Observed) -> bool {
    let Some(node) = &observed.node else { return false };
    let has_taint = node.has(KnownTaint::no_execute(NOT_READY)) || node.has(KnownTaint::no_execute(UNREACHABLE));
    !has_taint && matches!(no_execute(observed, node).0, Leaving::Waits | Leaving::Yes)
}

impl Plan {
    pub fn is_news(&self) -> bool {
        let Self { registration, change, labels, reason: _ } = self;
        registration.is_some() || *change != Change::None || !labels.is_empty()
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registration, change, labels, reason } = self;
        let mut steps = Vec::new();
        match registration {
            None | Some(Registration::Remove { uid: _, was_reported: false }) => {}
            Some(Registration::Add { uid: _ }) => steps.push("register".to_owned()),
            Some(Registration::Remove { uid: _, was_reported: true }) => steps.push("report its removal".to_owned()),
        }
        match change {
            Change::None => {}
            Change::Silence { conditions, was_ready: _ } => {
                steps.push(format!("set Unknown {}", conditions.join(", ")));
            }
            Change::Taint { add, remove, ends_turn: _ } => {
                if !add.is_empty() {
                    steps.push(format!("taint {}", list(add, KnownTaint::to_string)));
                }
                if !remove.is_empty() {
                    steps.push(format!("untaint {}", list(remove, KnownTaint::to_string)));
                }
            }
        }
        if !labels.is_empty() {
            steps.push(format!("label {}", list(labels, |(label, value)| format!("{label}={value}"))));
        }
        let steps = if steps.is_empty() { "keep".to_owned() } else { steps.join(", ") };
        write!(f, "{steps} ({reason})")
    }
}
