//! Which pods go, and why: a value made from all pods and nodes, and nothing else.
//!
//! Two decisions: [`plan`] for a round over everything, [`plan_missing`] for one node that was missing for long enough.
//! Left out: time. How long a node may be missing is the queue's business.
//!
//! Upstream: `pkg/controller/podgc/gc_controller.go`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::api::time::Time;

use crate::objects::Pod;
use crate::observe::{MissingNode, Observed};

/// What becomes of all pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// These go, in this order.
    pub delete: Vec<Deletion>,
    /// These nodes have pods and are not there: they are looked at again when they have been missing for a while.
    pub missing: BTreeSet<Text>,
}

/// A pod that goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// This very pod.
    pub pod: Arc<Pod>,
    /// Why.
    pub reason: Reason,
}

/// Why a pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It has ended, and too many others have ended after it.
    Terminated,
    /// It is being deleted, and its node is out of service.
    OutOfService,
    /// Its node is gone.
    Orphaned,
    /// It is being deleted, and no node ever had it.
    Unscheduled,
}

impl Reason {
    /// As in upstream's metrics (`pkg/controller/podgc/metrics`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
        }
    }
}

/// Decides on all pods; `threshold` ended ones may stay, any number if it is not positive. A pod goes once, for the
/// first of its reasons.
///
/// Upstream: `gc`.
pub fn plan(observed: &Observed, threshold: i32) -> Plan {
    let Observed { key: _, pods, nodes, out_of_service } = observed;
    let on_node_out_of_service =
        |pod: &&Arc<Pod>| pod.metadata.is_being_deleted() && out_of_service.contains(&pod.node);
    let is_unscheduled = |pod: &&Arc<Pod>| pod.metadata.is_being_deleted() && pod.node.is_empty();
    let chosen = [
        (Reason::Terminated, excess(pods, threshold)),
        (Reason::OutOfService, sorted(pods.iter().filter(on_node_out_of_service))),
        (Reason::Unscheduled, pods.iter().filter(is_unscheduled).cloned().collect()),
    ];
    let mut going: BTreeSet<Uid> = BTreeSet::new();
    let mut delete = Vec::new();
    for (reason, pods) in chosen {
        let pods = pods.into_iter().filter(|pod| going.insert(pod.metadata.uid));
        delete.extend(pods.map(|pod| Deletion { pod, reason }));
    }
    let known: BTreeSet<&str> = nodes.iter().map(|node| node.metadata.name()).collect();
    let missing = pods.iter().map(|pod| &pod.node).filter(|node| !node.is_empty() && !known.contains(node.as_str()));
    Plan { delete, missing: missing.cloned().collect() }
}

/// Upstream: `gcTerminated`.
fn excess(pods: &[Arc<Pod>], threshold: i32) -> Vec<Arc<Pod>> {
    let Some(threshold) = usize::try_from(threshold).ok().filter(|threshold| *threshold > 0) else { return Vec::new() };
    let terminated = || pods.iter().filter(|pod| pod.is_terminated());
    let excess = terminated().count().saturating_sub(threshold);
    if excess == 0 {
        return Vec::new();
    }
    let mut pods = sorted(terminated());
    pods.truncate(excess);
    pods
}

/// Those that were evicted first, for they only record that it happened; then by age.
///
/// Upstream: `byEvictionAndCreationTimestamp`; the namespace is ours, so that nothing is left to chance.
fn sorted<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> Vec<Arc<Pod>> {
    fn rank(pod: &Pod) -> (bool, Option<Time>, &str, &str) {
        (!pod.is_evicted, pod.metadata.creation, pod.metadata.name(), pod.metadata.namespace())
    }
    let mut pods: Vec<Arc<Pod>> = pods.cloned().collect();
    pods.sort_by(|a, b| rank(a).cmp(&rank(b)));
    pods
}

/// What becomes of the pods of a node that was missing.
#[derive(Clone, Debug, PartialEq)]
pub enum MissingPlan {
    /// They stay.
    Keep(KeepReason),
    /// These go.
    Delete(Vec<Deletion>),
}

/// Why the pods of a node that was missing stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// The node is there again.
    IsBack,
    /// There are none.
    NoPods,
    /// The cache does not have the node, and the apiserver does.
    Exists,
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
        if self.delete.is_empty() && self.missing.is_empty() {
            return f.write_str("nothing (all nodes are there, nothing is stuck, not too much has ended)");
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
        if !self.missing.is_empty() {
            write!(f, "{separator}wait for")?;
            self.missing.iter().try_for_each(|node| write!(f, " {node}"))?;
            f.write_str(" (missing)")?;
        }
        Ok(())
    }
}

impl fmt::Display for MissingPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(KeepReason::IsBack) => f.write_str("keep the pods (the node is back)"),
            Self::Keep(KeepReason::NoPods) => f.write_str("nothing (no pods)"),
            Self::Keep(KeepReason::Exists) => f.write_str("keep the pods (the node exists)"),
            Self::Delete(pods) => {
                f.write_str("delete")?;
                pods.iter().try_for_each(|deletion| write!(f, " {}", deletion.pod.metadata.key))?;
                f.write_str(" (the node is gone)")
            }
        }
    }
}

/// As the decision for the pod alone.
impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delete ({})", self.reason.as_str())
    }
}
