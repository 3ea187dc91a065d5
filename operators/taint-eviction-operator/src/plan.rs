//! Whether and when a pod has to leave its node, by the pod, its node and its pending deletion.
//!
//! A pending deletion keeps its time until the pod may stay or has to leave at once: upstream never moves a running timer.
//!
//! Upstream: `pkg/controller/tainteviction/taint_eviction.go`.

mod reasons;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::Key;
use shared::api::taint::Taint;
use shared::api::time::Time;
use shared::runtime::decisions::{self, Reasoned};
use shared::runtime::flags::GoDuration;

use crate::memory::Pending;
use crate::objects::{Disruption, Node, Pod, is_for_health};
use crate::observe::{Observed, ObservedNode};
pub use reasons::{NodeReason, Reason};

/// The decision about a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether the pending deletion is dropped, with an event.
    pub cancel: bool,
    /// The next step.
    pub step: Step,
    /// Why.
    pub reason: Reason,
}

/// The next step for a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Keep the pod.
    Keep,
    /// Delete it later.
    Start {
        /// The new pending deletion.
        pending: Pending,
        /// The pod's node.
        node: Text,
        /// The time until the deletion.
        left: Duration,
    },
    /// Wait until its pending deletion is due.
    Wait {
        /// The time until then.
        left: Duration,
    },
    /// Delete it now.
    Evict(Eviction),
}

/// A deletion that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Since when it is due.
    pub due: Timestamp,
    /// Whether this is the first try, which an event announces.
    pub announce: bool,
    /// Whether the pod is deleted; one that is already being deleted is only marked.
    pub delete: bool,
    /// Whether a user's change explains it: a taint that does not report the node's health would evict the pod now, too.
    pub is_explained: bool,
}

/// The decision about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// The pods whose plans have changed.
    pub sync: Vec<Key>,
    /// Why.
    pub reason: NodeReason,
}

/// The effect of a node's taints on a pod.
enum Verdict {
    /// It may stay.
    Stays(Reason),
    /// It has to leave now; the flag says whether a user's taint explains that.
    Leaves(Reason, bool),
    /// It has to leave after this many seconds, because it does not tolerate this taint longer; the flag says whether a
    /// user's taint explains that.
    LeavesAfter(i64, Text, bool),
    /// The node does not exist, so a pending deletion stays.
    AsBefore(Reason),
}

/// Decides about one pod.
///
/// Upstream: `handlePodUpdate` and `processPodOnNode`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { key: _, pod, node, pending } = observed;
    let is_waited_for = pending.is_some_and(|pending| !pending.is_announced);
    let Some(pod) = pod else {
        // An announced deletion has succeeded.
        return Plan { cancel: is_waited_for, step: Step::Keep, reason: Reason::Gone };
    };
    // A former pod of this name may have left a pending deletion.
    let own = pending.filter(|pending| pending.uid == pod.metadata.uid);
    let is_formers = is_waited_for && own.is_none();
    let (cancel, step, reason) = match (verdict(pod, node.as_deref()), own) {
        (Verdict::Stays(Reason::BeingDeleted), _) => (is_formers, Step::Keep, Reason::BeingDeleted),
        (Verdict::Stays(reason), _) => (is_formers || own.is_some(), Step::Keep, reason),
        (Verdict::Leaves(reason, is_explained), Some(pending)) if pending.is_announced => {
            (false, evict(pod, is_explained, Some(pending), pending.due), reason)
        }
        (Verdict::Leaves(reason, is_explained), _) => (is_waited_for, evict(pod, is_explained, None, now), reason),
        (Verdict::LeavesAfter(_, taint, is_explained), Some(pending)) => {
            (false, resume(pod, is_explained, pending, now), Reason::tolerates(taint, pending.due, now))
        }
        (Verdict::LeavesAfter(seconds, taint, is_explained), None) => {
            let due = now.checked_add(SignedDuration::from_secs(seconds.max(0))).unwrap_or(Timestamp::MAX);
            (is_formers, start(pod, is_explained, due, now), Reason::tolerates(taint, due, now))
        }
        (Verdict::AsBefore(reason), Some(pending)) => (false, resume(pod, false, pending, now), reason),
        (Verdict::AsBefore(reason), None) => (is_formers, Step::Keep, reason),
    };
    Plan { cancel, step, reason }
}

/// The effect of its node's taints on a pod.
///
/// Upstream: `GetMatchingTolerations`, `pkg/apis/core/v1/helper/helpers.go`, and `getMinTolerationTime`: of each taint
/// the first toleration counts, and of these the shortest.
fn verdict(pod: &Pod, node: Option<&Node>) -> Verdict {
    if pod.metadata.is_being_deleted() && pod.disruption == Disruption::ByTaint {
        return Verdict::Stays(Reason::BeingDeleted);
    }
    let Some(node) = node else {
        return Verdict::AsBefore(if pod.node.is_empty() { Reason::Unbound } else { Reason::NodeGone });
    };
    if !node.evicts_pods() {
        return Verdict::Stays(Reason::NotTainted);
    }
    let toleration = |taint: &Taint| pod.tolerations.iter().find(|toleration| toleration.tolerates(taint));
    let mut not_tolerated = node.taints.iter().filter(|taint| toleration(taint).is_none());
    if let Some(taint) = not_tolerated.clone().next() {
        let is_explained = not_tolerated.any(|taint| !is_for_health(taint));
        return Verdict::Leaves(Reason::NotTolerated { taint: name(taint) }, is_explained);
    }
    let mut for_a_while = node.taints.iter().filter_map(|taint| Some((toleration(taint)?.seconds?, taint)));
    match for_a_while.clone().min_by_key(|(seconds, _)| *seconds) {
        Some((shortest, taint)) => {
            let is_explained = for_a_while.any(|(seconds, taint)| seconds == shortest && !is_for_health(taint));
            Verdict::LeavesAfter(shortest, name(taint), is_explained)
        }
        None => Verdict::Stays(Reason::ToleratesForEver { taints: node.taints.len() }),
    }
}

/// As `kubectl` prints it, without the effect, which is always `NoExecute`.
fn name(taint: &Taint) -> Text {
    let Taint { key, value, effect: _ } = taint;
    if value.is_empty() { key.clone() } else { Text::new(&format!("{key}={value}")) }
}

/// The time until it is due; none if it is due.
fn left(due: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(now.duration_until(due)).ok().filter(|left| !left.is_zero())
}

fn start(pod: &Arc<Pod>, is_explained: bool, due: Timestamp, now: Timestamp) -> Step {
    left(due, now).map_or_else(
        || evict(pod, is_explained, None, due),
        |left| Step::Start {
            pending: Pending { uid: pod.metadata.uid, due, is_announced: false },
            node: pod.node.clone(),
            left,
        },
    )
}

fn resume(pod: &Arc<Pod>, is_explained: bool, pending: Pending, now: Timestamp) -> Step {
    left(pending.due, now)
        .map_or_else(|| evict(pod, is_explained, Some(pending), pending.due), |left| Step::Wait { left })
}

fn evict(pod: &Arc<Pod>, is_explained: bool, pending: Option<Pending>, due: Timestamp) -> Step {
    Step::Evict(Eviction {
        pod: Arc::clone(pod),
        due,
        announce: pending.is_none_or(|pending| !pending.is_announced),
        delete: !pod.metadata.is_being_deleted(),
        is_explained,
    })
}

/// Decides which pods of a node have to be synced.
///
/// Upstream: `handleNodeUpdate`.
pub fn plan_node(observed: &ObservedNode, now: Timestamp) -> NodePlan {
    let ObservedNode { node, pods } = observed;
    let news = pods.iter().filter(|pod| plan(pod, now).is_news());
    let (taints, pods): (Vec<Text>, usize) = (node.taints.iter().map(name).collect(), pods.len());
    let reason =
        if node.evicts_pods() { NodeReason::Tainted { taints, pods } } else { NodeReason::NotTainted { pods } };
    NodePlan { sync: news.map(|pod| pod.key.clone()).collect(), reason }
}

impl Plan {
    /// Whether it changes anything.
    pub fn is_news(&self) -> bool {
        let Self { cancel, step, reason: _ } = self;
        *cancel
            || match step {
                Step::Keep | Step::Wait { left: _ } => false,
                Step::Start { .. } | Step::Evict(_) => true,
            }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl Reasoned for NodePlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl Reason {
    fn tolerates(taint: Text, due: Timestamp, now: Timestamp) -> Self {
        let until = Time::of(due);
        if left(due, now).is_some() { Self::Tolerates { taint, until } } else { Self::Tolerated { taint, until } }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cancel, step, reason } = self;
        if *cancel {
            f.write_str("cancel, ")?;
        }
        write!(f, "{step} ({reason})")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::Start { pending: _, node: _, left } => write!(f, "evict after {}", GoDuration(*left)),
            Self::Wait { left } => write!(f, "wait {}", GoDuration(*left)),
            Self::Evict(Eviction { pod: _, due: _, announce, delete, is_explained: _ }) => {
                let what = if *delete { "evict" } else { "mark" };
                let again = if *announce { "" } else { " again" };
                write!(f, "{what}{again}")
            }
        }
    }
}

impl fmt::Display for NodePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sync, reason } = self;
        if sync.is_empty() {
            write!(f, "nothing ({reason})")
        } else {
            write!(f, "sync {} ({reason})", list(sync, Key::to_string))
        }
    }
}
