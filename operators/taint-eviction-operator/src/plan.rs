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
use shared::api::pod::disruption::Disruption;
use shared::api::taint::{Taint, Toleration};
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, Reasoned};

use crate::memory::Pending;
use crate::objects::{Node, Pod, is_for_health};
use crate::observe::{Observed, ObservedNode};
pub use reasons::{NodeReason, Reason};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether the pending deletion is dropped, with an event.
    pub cancel: bool,
    pub step: Step,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Keep,
    Start {
        pending: Pending,
        node: Text,
        /// The time until the deletion.
        left: Duration,
    },
    /// Wait until its pending deletion is due.
    Wait {
        /// The time until then.
        left: Duration,
    },
    Evict(Eviction),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    pub pod: Arc<Pod>,
    /// Since when it is due.
    pub due: Timestamp,
    /// When the users' taints alone would end the pod; none if they never would.
    pub users: Option<Timestamp>,
    /// Whether this is the first try, which an event announces.
    pub announce: bool,
    /// Whether the pod is deleted; one that is already being deleted is only marked.
    pub delete: bool,
    /// Whether a user's change explains it: without the taints that report the node's health the pod would have to leave by
    /// now, too.
    pub is_explained: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// The pods whose plans have changed.
    pub sync: Vec<Key>,
    pub reason: NodeReason,
}

/// The effect of a node's taints on a pod.
enum Verdict {
    Stays(Reason),
    Leaves(Reason, Causes),
    /// It has to leave after this many seconds, because it does not tolerate this taint longer.
    LeavesAfter(i64, Text, Causes),
    /// The node does not exist, so a pending deletion stays.
    AsBefore(Reason),
}

#[derive(Clone, Copy)]
struct Causes {
    /// Whether it may be one that reports the node's health.
    is_health: bool,
    /// After how many seconds the users' taints would; none if they never would.
    users: Option<i64>,
}

#[derive(Clone, Copy)]
struct Explanation {
    is_health: bool,
    /// When the users' taints alone would end the pod.
    users: Option<Timestamp>,
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
        (Verdict::Leaves(reason, causes), Some(pending)) if pending.is_announced || pending.due <= now => {
            (false, evict(pod, causes.explain(own, now), Some(pending), (pending.due, now)), reason)
        }
        (Verdict::Leaves(reason, causes), _) => {
            (is_waited_for, evict(pod, causes.explain(own, now), None, (now, now)), reason)
        }
        (Verdict::LeavesAfter(_, taint, causes), Some(pending)) => {
            (false, resume(pod, causes.explain(own, now), pending, now), Reason::tolerates(taint, pending.due, now))
        }
        (Verdict::LeavesAfter(seconds, taint, causes), None) => {
            let due = after(seconds, now);
            (is_formers, start(pod, causes.explain(None, now), due, now), Reason::tolerates(taint, due, now))
        }
        (Verdict::AsBefore(reason), Some(pending)) => {
            let by = Explanation { is_health: true, users: pending.users };
            (false, resume(pod, by, pending, now), reason)
        }
        (Verdict::AsBefore(reason), None) => (is_formers, Step::Keep, reason),
    };
    Plan { cancel, step, reason }
}

fn after(seconds: i64, now: Timestamp) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(seconds.max(0))).unwrap_or(Timestamp::MAX)
}

/// The effect of its node's taints on a pod.
///
/// Upstream: `GetMatchingTolerations`, `pkg/apis/core/v1/helper/helpers.go`, and `getMinTolerationTime`: of each taint
/// the first toleration counts, and of these the shortest.
fn verdict(pod: &Pod, node: Option<&Node>) -> Verdict {
    if pod.metadata.is_being_deleted() && pod.disruption == Disruption::Marked {
        return Verdict::Stays(Reason::BeingDeleted);
    }
    let Some(node) = node else {
        return Verdict::AsBefore(if pod.node.is_empty() { Reason::Unbound } else { Reason::NodeGone });
    };
    if !node.evicts_pods() {
        return Verdict::Stays(Reason::NotTainted);
    }
    let causes = Causes::of(pod, node);
    let limits = node.taints.iter().map(|taint| (toleration(pod, taint), taint));
    if let Some((_, taint)) = limits.clone().find(|(toleration, _)| toleration.is_none()) {
        return Verdict::Leaves(Reason::NotTolerated { taint: name(taint) }, causes);
    }
    let for_a_while = limits.filter_map(|(toleration, taint)| Some((toleration?.seconds?, taint)));
    match for_a_while.min_by_key(|(seconds, _)| *seconds) {
        Some((shortest, taint)) => Verdict::LeavesAfter(shortest, name(taint), causes),
        None => Verdict::Stays(Reason::ToleratesForEver { taints: node.taints.len() }),
    }
}

fn toleration<'a>(pod: &'a Pod, taint: &Taint) -> Option<&'a Toleration> {
    pod.tolerations.iter().find(|toleration| toleration.tolerates(taint))
}

impl Causes {
    fn of(pod: &Pod, node: &Node) -> Self {
        let (mut causes, mut is_certain) = (Self { is_health: false, users: None }, false);
        for taint in &node.taints {
            let seconds = match toleration(pod, taint) {
                None => 0,
                Some(Toleration { seconds: Some(seconds), .. }) => *seconds,
                Some(Toleration { seconds: None, .. }) => continue,
            };
            if is_for_health(taint) {
                causes.is_health = true;
            } else {
                is_certain |= toleration(pod, taint).is_none();
                causes.users = Some(causes.users.map_or(seconds, |users| users.min(seconds)));
            }
        }
        causes.is_health &= !is_certain;
        causes
    }

    /// As a timer, the users' time is never moved.
    fn explain(self, own: Option<Pending>, now: Timestamp) -> Explanation {
        let Self { is_health, users } = self;
        let known = own.and_then(|own| own.users);
        Explanation { is_health, users: users.map(|seconds| known.unwrap_or_else(|| after(seconds, now))) }
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

fn start(pod: &Arc<Pod>, by: Explanation, due: Timestamp, now: Timestamp) -> Step {
    left(due, now).map_or_else(
        || evict(pod, by, None, (due, now)),
        |left| Step::Start {
            pending: Pending { uid: pod.metadata.uid, due, users: by.users, is_announced: false },
            node: pod.node.clone(),
            left,
        },
    )
}

fn resume(pod: &Arc<Pod>, by: Explanation, pending: Pending, now: Timestamp) -> Step {
    match left(pending.due, now) {
        None => evict(pod, by, Some(pending), (pending.due, now)),
        Some(left) if by.users == pending.users => Step::Wait { left },
        Some(left) => Step::Start { pending: Pending { users: by.users, ..pending }, node: pod.node.clone(), left },
    }
}

fn evict(pod: &Arc<Pod>, by: Explanation, pending: Option<Pending>, (due, now): (Timestamp, Timestamp)) -> Step {
    Step::Evict(Eviction {
        pod: Arc::clone(pod),
        due,
        users: by.users,
        announce: pending.is_none_or(|pending| !pending.is_announced),
        delete: !pod.metadata.is_being_deleted(),
        is_explained: !by.is_health || by.users.is_some_and(|users| users <= now),
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
    /// Whether it deletes a pod only because of the node's health.
    pub fn is_unexplained(&self) -> bool {
        matches!(&self.step, Step::Evict(eviction) if eviction.delete && !eviction.is_explained)
    }

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
            Self::Evict(Eviction { pod: _, due: _, users: _, announce, delete, is_explained: _ }) => {
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
