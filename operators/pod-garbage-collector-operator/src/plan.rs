//! Which pods are deleted, and why.
//!
//! Three decisions: [`plan`] for a round over terminated and stuck pods, [`plan_bindings`] for which nodes are missing,
//! and [`plan_missing`] for one node that was missing for the whole quarantine, which is a timer of the queue.
//!
//! Upstream: `pkg/controller/podgc/gc_controller.go`.

mod reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Meta, Uid};
use shared::api::time::Time;
use shared::working::decisions::{self, Reasoned};

use crate::objects::{DeletionReason, Pod, PodMetadata, excess};
use crate::observe::{Bindings, MissingNode, Observed, Unread};
pub use reasons::{BindingsReason, KeepReason, MissingReason, NodeOutlook, PodOutlook, RoundReason, pod_outlook};

/// How many nodes, and how many failures, a reason names.
const LISTED: usize = 5;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub delete: Vec<Deletion>,
    /// The reads that failed; their pods are skipped.
    pub unread: Vec<Unread>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    pub pod: Arc<Pod>,
    pub reason: DeletionReason,
}

/// Decides about terminated and stuck pods. `threshold` terminated ones may stay; any number if it is not positive. A pod
/// with several reasons is deleted for the first one.
///
/// Upstream: `gc`.
pub fn plan(observed: &Observed, threshold: i32) -> Plan {
    let Observed { key: _, ended, unsuccessful, stuck, out_of_service, unread } = observed;
    let stuck = || stuck.iter().filter(|pod| pod.metadata.is_being_deleted());
    let mut on_nodes: Vec<&Arc<Pod>> = stuck().filter(|pod| out_of_service.contains(&pod.node)).collect();
    on_nodes.sort_by(|a, b| rank(a.is_evicted, &a.metadata).cmp(&rank(b.is_evicted, &b.metadata)));
    let chosen = [
        (
            DeletionReason::Terminated,
            unsuccessful.as_ref().map_or_else(Vec::new, |known| oldest(ended, known, threshold)),
        ),
        (DeletionReason::OutOfService, on_nodes.into_iter().cloned().collect()),
        (DeletionReason::Unscheduled, stuck().filter(|pod| pod.node.is_empty()).cloned().collect()),
    ];
    let mut going: BTreeSet<Uid> = BTreeSet::new();
    let mut delete = Vec::new();
    for (reason, pods) in chosen {
        let pods = pods.into_iter().filter(|pod| going.insert(pod.metadata.uid));
        delete.extend(pods.map(|pod| Deletion { pod, reason }));
    }
    Plan { delete, unread: unread.clone() }
}

/// The terminated pods beyond the threshold; those that are not `unsuccessful` have succeeded.
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

/// The order of deletions: evicted pods first, because they only record the eviction; then by age.
///
/// Upstream: `byEvictionAndCreationTimestamp`; the namespace is added, so that the order is total.
fn rank(is_evicted: bool, metadata: &Meta) -> (bool, Option<Time>, &str, &str) {
    (!is_evicted, metadata.creation, metadata.name(), metadata.namespace())
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BindingsPlan {
    /// The nodes that have pods and do not exist. Each is synced after the quarantine.
    pub missing: BTreeSet<Text>,
    /// Those of them that existed, because pods have run on them. A pod may name any node.
    pub existed: BTreeSet<Text>,
}

/// Decides which of the nodes that pods are bound to are missing.
///
/// Upstream: `gcOrphaned`.
pub fn plan_bindings(observed: &Bindings) -> BindingsPlan {
    let Bindings { key: _, nodes, bound_to, ran_on } = observed;
    let missing: BTreeSet<Text> = bound_to.difference(nodes).filter(|node| !node.is_empty()).cloned().collect();
    BindingsPlan { existed: missing.intersection(ran_on).cloned().collect(), missing }
}

/// The decision about the pods of a node that was missing.
#[derive(Clone, Debug, PartialEq)]
pub enum MissingPlan {
    Keep(KeepReason),
    Delete(Vec<Deletion>),
}

/// Decides about the pods of a node that was missing.
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
        let orphaned = |pod: &Arc<Pod>| Deletion { pod: Arc::clone(pod), reason: DeletionReason::Orphaned };
        MissingPlan::Delete(pods.iter().map(orphaned).collect())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.delete.is_empty() && self.unread.is_empty() {
            return write!(f, "nothing ({})", self.why());
        }
        let mut separator = "";
        for reason in [DeletionReason::Terminated, DeletionReason::OutOfService, DeletionReason::Unscheduled] {
            let mut pods = self.delete.iter().filter(|deletion| deletion.reason == reason).peekable();
            if pods.peek().is_some() {
                write!(f, "{separator}delete")?;
                pods.try_for_each(|deletion| write!(f, " {}", deletion.pod.metadata.key))?;
                write!(f, " ({})", reason.as_str())?;
                separator = ", ";
            }
        }
        for Unread { reason, error } in &self.unread {
            write!(f, "{separator}skip {} ({error})", reason.as_str())?;
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
        let count = |reason: DeletionReason| delete.iter().filter(|deletion| deletion.reason == reason).count();
        RoundReason::Found {
            terminated: count(DeletionReason::Terminated),
            out_of_service: count(DeletionReason::OutOfService),
            unscheduled: count(DeletionReason::Unscheduled),
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
    pub fn deletes_what_ran(&self) -> bool {
        matches!(self, Self::Delete(pods) if pods.iter().any(|deletion| deletion.pod.has_run))
    }

    /// The same without the pods that have run.
    #[must_use]
    pub fn without_what_ran(mut self) -> Self {
        if let Self::Delete(pods) = &mut self {
            pods.retain(|deletion| !deletion.pod.has_run);
        }
        self
    }

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
