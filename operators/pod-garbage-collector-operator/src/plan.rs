//! Which pods go, and why: values made from what was observed, and nothing else.
//!
//! Three decisions: [`plan`] for a round over the pods that have ended or are stuck, [`plan_bindings`] for which nodes
//! are missing, [`plan_missing`] for one node that was missing for long enough.
//! Left out: time. How long a node may be missing is the queue's business.
//!
//! Upstream: `pkg/controller/podgc/gc_controller.go`.

mod reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Meta, Uid};
use shared::api::time::Time;
use shared::runtime::decisions::{self, Reasoned};

use crate::objects::{Pod, PodMetadata};
use crate::observe::{Bindings, MissingNode, Observed, Unread};
pub use reasons::{
    BindingsReason, KeepReason, MissingReason, NodeOutlook, PodOutlook, Reason, RoundReason, pod_outlook,
};

/// So many nodes, and so many failures, are named in a reason.
const LISTED: usize = 5;

/// The decision about the pods that have ended or are stuck.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// These go, in this order.
    pub delete: Vec<Deletion>,
    /// These are left out, for they could not be read.
    pub unread: Vec<Unread>,
}

/// A pod that goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// This very pod.
    pub pod: Arc<Pod>,
    /// Why.
    pub reason: Reason,
}

/// Decides on the pods that have ended or are stuck; `threshold` ended ones may stay, any number if it is not positive.
/// A pod goes once, for the first of its reasons.
///
/// Upstream: `gc`.
pub fn plan(observed: &Observed, threshold: i32) -> Plan {
    let Observed { key: _, ended, unsuccessful, stuck, out_of_service, unread } = observed;
    let stuck = || stuck.iter().filter(|pod| pod.metadata.is_being_deleted());
    let mut on_nodes: Vec<&Arc<Pod>> = stuck().filter(|pod| out_of_service.contains(&pod.node)).collect();
    on_nodes.sort_by(|a, b| rank(a.is_evicted, &a.metadata).cmp(&rank(b.is_evicted, &b.metadata)));
    let chosen = [
        (Reason::Terminated, unsuccessful.as_ref().map_or_else(Vec::new, |known| oldest(ended, known, threshold))),
        (Reason::OutOfService, on_nodes.into_iter().cloned().collect()),
        (Reason::Unscheduled, stuck().filter(|pod| pod.node.is_empty()).cloned().collect()),
    ];
    let mut going: BTreeSet<Uid> = BTreeSet::new();
    let mut delete = Vec::new();
    for (reason, pods) in chosen {
        let pods = pods.into_iter().filter(|pod| going.insert(pod.metadata.uid));
        delete.extend(pods.map(|pod| Deletion { pod, reason }));
    }
    Plan { delete, unread: unread.clone() }
}

/// How many of so many ended pods are too many.
pub fn excess(ended: usize, threshold: i32) -> usize {
    let threshold = usize::try_from(threshold).ok().filter(|threshold| *threshold > 0);
    threshold.map_or(0, |threshold| ended.saturating_sub(threshold))
}

/// The ended pods that are too many; those that are not `unsuccessful` have succeeded.
///
/// Upstream: `gcTerminated`.
fn oldest(ended: &[Arc<PodMetadata>], unsuccessful: &[Arc<Pod>], threshold: i32) -> Vec<Arc<Pod>> {
    let known: BTreeMap<Uid, &Arc<Pod>> = unsuccessful.iter().map(|pod| (pod.metadata.uid, pod)).collect();
    let whole = |pod: &PodMetadata| known.get(&pod.metadata.uid).copied();
    let is_evicted = |pod: &PodMetadata| whole(pod).is_some_and(|pod| pod.is_evicted);
    let mut pods: Vec<_> = ended.iter().map(|pod| (rank(is_evicted(pod), &pod.metadata), pod)).collect();
    pods.sort_by_key(|(rank, _)| *rank);
    let pods = pods.into_iter().take(excess(ended.len(), threshold));
    pods.map(|(_, pod)| whole(pod).map_or_else(|| Arc::new(Pod::succeeded(pod)), Arc::clone)).collect()
}

/// In this order pods go: those that were evicted first, for they only record that it happened; then by age.
///
/// Upstream: `byEvictionAndCreationTimestamp`; the namespace is ours, so that nothing is left to chance.
fn rank(is_evicted: bool, metadata: &Meta) -> (bool, Option<Time>, &str, &str) {
    (!is_evicted, metadata.creation, metadata.name(), metadata.namespace())
}

/// Which nodes are missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BindingsPlan {
    /// These nodes have pods and are not there: they are looked at again when they have been missing for a while.
    pub missing: BTreeSet<Text>,
}

/// Decides which of the nodes that pods are bound to are missing.
///
/// Upstream: `gcOrphaned`.
pub fn plan_bindings(observed: &Bindings) -> BindingsPlan {
    let Bindings { key: _, nodes, bound_to } = observed;
    BindingsPlan { missing: bound_to.difference(nodes).filter(|node| !node.is_empty()).cloned().collect() }
}

/// The decision about the pods of a node that was missing.
#[derive(Clone, Debug, PartialEq)]
pub enum MissingPlan {
    /// They stay.
    Keep(KeepReason),
    /// These go.
    Delete(Vec<Deletion>),
}

/// Decides on the pods of a node that was missing.
///
/// Upstream: `gcOrphaned` and `discoverDeletedNodes`.
pub fn plan_missing(observed: &MissingNode) -> MissingPlan {
    let MissingNode { key: _, is_cached, exists, pods } = observed;
    if *is_cached {
        MissingPlan::Keep(KeepReason::IsBack)
    } else if pods.is_empty() {
        MissingPlan::Keep(KeepReason::NoPods)
    } else if *exists {
        MissingPlan::Keep(KeepReason::Exists)
    } else {
        let orphaned = |pod: &Arc<Pod>| Deletion { pod: Arc::clone(pod), reason: Reason::Orphaned };
        MissingPlan::Delete(pods.iter().map(orphaned).collect())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.delete.is_empty() && self.unread.is_empty() {
            return write!(f, "nothing ({})", self.why());
        }
        let mut separator = "";
        for reason in [Reason::Terminated, Reason::OutOfService, Reason::Unscheduled] {
            let mut pods = self.delete.iter().filter(|deletion| deletion.reason == reason).peekable();
            if pods.peek().is_some() {
                write!(f, "{separator}delete")?;
                pods.try_for_each(|deletion| write!(f, " {}", deletion.pod.metadata.key))?;
                write!(f, " ({})", reason.as_str())?;
                separator = ", ";
            }
        }
        for Unread { reason, error } in &self.unread {
            write!(f, "{separator}leave out {} ({error})", reason.as_str())?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Display for BindingsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.missing.is_empty() { "nothing" } else { "wait for" })?;
        self.missing.iter().try_for_each(|node| write!(f, " {node}"))?;
        write!(f, " ({})", self.why())
    }
}

impl fmt::Display for MissingPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(KeepReason::NoPods) => f.write_str("nothing")?,
            Self::Keep(KeepReason::IsBack | KeepReason::Exists) => f.write_str("keep the pods")?,
            Self::Delete(pods) => {
                f.write_str("delete")?;
                pods.iter().try_for_each(|deletion| write!(f, " {}", deletion.pod.metadata.key))?;
            }
        }
        write!(f, " ({})", self.why())
    }
}

/// As the decision for the pod alone.
impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delete ({})", self.reason)
    }
}

impl Plan {
    fn why(&self) -> RoundReason {
        let Self { delete, unread } = self;
        if !unread.is_empty() {
            return RoundReason::Unread { reasons: unread.iter().map(|unread| unread.reason).take(LISTED).collect() };
        }
        let count = |reason: Reason| delete.iter().filter(|deletion| deletion.reason == reason).count();
        RoundReason::Found {
            terminated: count(Reason::Terminated),
            out_of_service: count(Reason::OutOfService),
            unscheduled: count(Reason::Unscheduled),
        }
    }
}

impl BindingsPlan {
    fn why(&self) -> BindingsReason {
        if self.missing.is_empty() {
            return BindingsReason::AllThere;
        }
        let first = self.missing.iter().take(LISTED).map(ToString::to_string).collect();
        BindingsReason::Missing { nodes: self.missing.len(), first }
    }
}

impl MissingPlan {
    fn why(&self) -> MissingReason {
        match self {
            Self::Keep(reason) => (*reason).into(),
            Self::Delete(pods) => MissingReason::Gone { pods: pods.len() },
        }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl Reasoned for BindingsPlan {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl Reasoned for MissingPlan {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl Reasoned for Deletion {
    fn reason(&self) -> impl decisions::Reason {
        self.reason
    }
}
