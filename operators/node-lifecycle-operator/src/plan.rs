//! Whether a node is heard of, and which conditions, taints and labels it has to have: a value made from the node and
//! the memory of it, and nothing else.
//!
//! A node is judged by the time since this process last saw a sign of its kubelet. Left out: pods, which are marked by
//! a plan of their own in [`pods`], and the eviction of pods, which is taint-eviction-controller's.
//!
//! Upstream: `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.

pub mod disruption;
pub mod gap;
pub mod pods;
pub mod rate_limited_queue;
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
use shared::runtime::decisions::{self, LiveRead, Reasoned};

use crate::objects::{Node, OF_KUBELET, Ready};
use crate::observe::Observed;
use crate::observe::memory::{Known, Turn};
pub use reasons::{Leaving, PodsReason, Question, Reason, RoundReason};

/// The values of the flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How often all nodes are looked at.
    pub period: Duration,
    /// How long a node may be silent.
    pub grace: Duration,
    /// How long a node may be silent that never had a status.
    pub startup_grace: Duration,
    /// How many nodes of a zone are tainted in a second.
    pub rate: f64,
    /// The same of a large zone that is partially disrupted.
    pub secondary_rate: f64,
    /// A zone with more nodes is large.
    pub large_zone: i32,
    /// From this part of its nodes on a zone is partially disrupted.
    pub unhealthy_threshold: f64,
}

/// The decision about a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// People are told of it.
    pub tell: Option<Tell>,
    /// Its conditions or its taints change. Taints follow from conditions, so these come first.
    pub change: Change,
    /// Labels that are set.
    pub labels: Vec<(&'static str, Text)>,
    /// Why.
    pub reason: Reason,
}

/// The news of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// It is new.
    Registered {
        /// This one.
        uid: Uid,
    },
    /// It is gone.
    Removed {
        /// This one.
        uid: Uid,
        /// Whether people know that it was there.
        was_told: bool,
    },
}

/// The change of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is.
    None,
    /// Its conditions become Unknown.
    Silence {
        /// These, by type.
        conditions: Vec<&'static str>,
        /// Whether it was ready.
        was_ready: bool,
    },
    /// It gets other taints.
    Taint {
        /// These are added.
        add: Vec<KnownTaint>,
        /// These are removed.
        remove: Vec<KnownTaint>,
        /// Whether its turn in its zone is over then.
        ends_turn: bool,
    },
}

/// Whether the node's Lease has to be read live before it becomes Unknown: nobody is judged by a cache that may be
/// behind.
pub fn plan_live_read(observed: &Observed, config: &Config, now: Timestamp) -> Option<LiveRead<Question>> {
    if !matches!(plan(observed, config, now).change, Change::Silence { .. }) {
        return None;
    }
    let heard = Time::of(observed.known.map_or(now, |known| known.heard));
    Some(LiveRead { step: "read its lease", reason: Question::Renewed { heard } })
}

/// Decides about one node.
///
/// Upstream: `tryUpdateNodeHealth`, `processTaintBaseEviction`, `doNoScheduleTaintingPass` and `reconcileNodeLabels`.
pub fn plan(observed: &Observed, config: &Config, now: Timestamp) -> Plan {
    let Observed { key: _, node, known, renewed: _, is_all_disrupted: _ } = observed;
    let Some(node) = node else {
        let tell = known.map(|Known { uid, is_registered, .. }| Tell::Removed { uid, was_told: is_registered });
        return Plan { tell, change: Change::None, labels: Vec::new(), reason: Reason::Gone };
    };
    let own = known.filter(|known| known.uid == node.metadata.uid);
    let is_new = own.is_none_or(|own| !own.is_registered);
    let tell = is_new.then_some(Tell::Registered { uid: node.metadata.uid });
    // A node that was never seen before was seen now.
    let since = own.map_or(now, |own| own.heard);
    let is_silent = is_silent(node, since, config, now);
    let (labels, ready, heard) = (node.stale_labels(), node.ready(), Time::of(since));
    if is_silent && ready != Ready::Unknown {
        let is_other = |type_: &&str| node.condition(type_).is_none_or(|condition| condition.status != *UNKNOWN);
        let conditions = OF_KUBELET.into_iter().filter(is_other).collect();
        let change = Change::Silence { conditions, was_ready: ready == Ready::True };
        return Plan { tell, change, labels, reason: Reason::Silent { ready, heard, leaving: Leaving::No } };
    }
    let (mut add, mut remove) = no_schedule(node);
    let (leaving, add_no_execute, remove_no_execute) = no_execute(observed, node);
    // One taint replaces the other out of turn.
    let ends_turn = !add_no_execute.is_empty() && remove_no_execute.is_empty();
    add.extend(add_no_execute);
    remove.extend(remove_no_execute);
    let is_right = add.is_empty() && remove.is_empty();
    let change = if is_right { Change::None } else { Change::Taint { add, remove, ends_turn } };
    let reason =
        if is_silent { Reason::Silent { ready, heard, leaving } } else { Reason::Heard { ready, heard, leaving } };
    Plan { tell, change, labels, reason }
}

/// Whether a node has not been heard of for its grace period.
fn is_silent(node: &Node, heard: Timestamp, config: &Config, now: Timestamp) -> bool {
    let grace = if node.ready() == Ready::Missing { config.startup_grace } else { config.grace };
    Duration::try_from(now.duration_since(heard)).is_ok_and(|silent| silent > grace)
}

/// The taints without which pods would come: those to add, and those to remove.
fn no_schedule(node: &Node) -> (Vec<KnownTaint>, Vec<KnownTaint>) {
    let (wanted, has) = (node.asked_for(), node.kept_from_pods());
    let add = wanted.iter().copied().filter(|taint| !has.contains(taint)).collect();
    let remove = has.into_iter().filter(|taint| !wanted.contains(taint)).collect();
    (add, remove)
}

/// The taints by which pods have to leave: those to add, and those to remove. One of the two replaces the other at
/// once, and a node that has neither waits for its turn.
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

/// Whether a node has to be tainted once it is its turn, or waits for that it becomes so.
pub(crate) fn waits_for_turn(observed: &Observed) -> bool {
    let Some(node) = &observed.node else { return false };
    let has_taint = node.has(KnownTaint::no_execute(NOT_READY)) || node.has(KnownTaint::no_execute(UNREACHABLE));
    !has_taint && matches!(no_execute(observed, node).0, Leaving::Waits | Leaving::Yes)
}

impl Plan {
    /// Whether it changes anything.
    pub fn is_news(&self) -> bool {
        let Self { tell, change, labels, reason: _ } = self;
        tell.is_some() || *change != Change::None || !labels.is_empty()
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tell, change, labels, reason } = self;
        let mut steps = Vec::new();
        match tell {
            None | Some(Tell::Removed { uid: _, was_told: false }) => {}
            Some(Tell::Registered { uid: _ }) => steps.push("register".to_owned()),
            Some(Tell::Removed { uid: _, was_told: true }) => steps.push("tell that it is gone".to_owned()),
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
