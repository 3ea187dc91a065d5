//! Whether a DaemonSet is for a node, and the DaemonSets that a changed node concerns.
//!
//! Left out: room on the node, its ports, other pods and its health. The first three are the scheduler's, and the last
//! one is a taint that daemons tolerate.
//!
//! Upstream: `pkg/controller/daemon/daemon_controller.go`.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use shared::api::list::list;
use shared::api::object::Key;
use shared::api::taint::TaintEffect;
use shared::working::decisions::{self, Reasoned};

use super::reasons::Misfit;
use crate::objects::DaemonSet;
use crate::objects::node::Node;
use crate::observe::ObservedNode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eligibility {
    Runs,
    /// It gets none there, but one that is there stays.
    Stays(Misfit),
    Leaves(Misfit),
}

/// Decides whether a DaemonSet is for a node.
///
/// Upstream: `NodeShouldRunDaemonPod` and `predicates`.
pub fn eligibility(set: &DaemonSet, node: &Node) -> Eligibility {
    let placement = &set.spec.placement;
    if placement.names_another(node) {
        return Eligibility::Leaves(Misfit::AnotherNode);
    }
    if !placement.selects(node) {
        return Eligibility::Leaves(Misfit::NodeSelector);
    }
    if !placement.has_affinity(node) {
        return Eligibility::Leaves(Misfit::NodeAffinity);
    }
    let mut misfit = None;
    for taint in node.taints.iter().filter(|taint| !placement.tolerates(taint)) {
        match taint.effect {
            TaintEffect::NoExecute => return Eligibility::Leaves(Misfit::Taint(taint.clone())),
            TaintEffect::NoSchedule => misfit = misfit.or(Some(taint)),
            TaintEffect::PreferNoSchedule | TaintEffect::Unset | TaintEffect::Other => {}
        }
    }
    misfit.map_or(Eligibility::Runs, |taint| Eligibility::Stays(Misfit::Taint(taint.clone())))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    pub sync: Vec<Key>,
    pub reason: NodeReason,
}

/// Why DaemonSets are synced for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NodeReason {
    /// Some lack a pod there, have one that they should not have, or have one and count misscheduled ones.
    Concerned {
        concerned: usize,
        /// How many there are.
        sets: usize,
    },
}

/// Decides which DaemonSets have to be synced because a node is new or has changed.
///
/// Upstream: `syncNodeUpdate`.
pub fn plan_node(observed: &ObservedNode) -> NodePlan {
    let ObservedNode { node, sets } = observed;
    let is_concerned = |(set, has_pod): &&(Arc<DaemonSet>, bool)| {
        let is_amiss = match eligibility(set, node) {
            Eligibility::Runs => !has_pod,
            Eligibility::Stays(_) => false,
            Eligibility::Leaves(_) => *has_pod,
        };
        is_amiss || (*has_pod && set.status.number_misscheduled > 0)
    };
    let sync: Vec<Key> = sets.iter().filter(is_concerned).map(|(set, _)| set.metadata.key.clone()).collect();
    let reason = NodeReason::Concerned { concerned: sync.len(), sets: sets.len() };
    NodePlan { sync, reason }
}

/// The DaemonSets that have to be synced because a node is gone: those that were for it, and those with a pod there.
pub fn bereft(observed: &ObservedNode) -> Vec<Key> {
    let ObservedNode { node, sets } = observed;
    let is_bereft = |(set, has_pod): &&(Arc<DaemonSet>, bool)| *has_pod || eligibility(set, node) == Eligibility::Runs;
    sets.iter().filter(is_bereft).map(|(set, _)| set.metadata.key.clone()).collect()
}

impl Reasoned for NodePlan {
    fn reason(&self) -> impl decisions::Reason {
        self.reason
    }
}

impl decisions::Reason for NodeReason {}

/// `sync kube-system/proxy (1 of 2 DaemonSets are concerned)`.
impl fmt::Display for NodePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sync, reason } = self;
        let shown = if sync.is_empty() { "nothing".to_owned() } else { format!("sync {}", list(sync, Key::to_string)) };
        write!(f, "{shown} ({reason})")
    }
}

impl fmt::Display for NodeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Concerned { concerned, sets } = self;
        write!(f, "{concerned} of {sets} DaemonSets are concerned")
    }
}
