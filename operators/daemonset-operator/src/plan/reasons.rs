//! Why a plan is what it is, and why each of its steps is made: values that programs read as JSON, and people as text.
//!
//! Left out: what follows from a reason, which is the other rooms'.

use std::fmt;

use serde::Serialize;
use shared::api::selector::InvalidSelector;
use shared::api::taint::Taint;
use shared::working::decisions;
use shared::working::expectations::Outstanding;

use crate::memory::Pause;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    InvalidSelector {
        error: InvalidSelector,
    },
    /// All pods are selected, which is never meant.
    SelectsEverything,
    /// The DaemonSet is being deleted; its pods are the garbage collector's.
    BeingDeleted,
    /// The cache has not seen the last writes yet.
    Waiting(Outstanding),
    /// The number of pods that may be replaced at a time is not known.
    InvalidStrategy {
        error: String,
    },
    /// The nodes that it is for, and their pods.
    Nodes(Numbers),
}

/// How far a DaemonSet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    /// How many nodes it is for.
    pub desired: i32,
    /// How many of them have a pod that is available.
    pub available: i32,
    /// How many of them have a pod of the template of now.
    pub updated: i32,
    /// How many other nodes have a pod.
    pub misscheduled: i32,
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidSelector { error } => write!(f, "invalid selector: {error}"),
            Self::SelectsEverything => f.write_str("its selector selects all pods"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::Waiting(outstanding) => write!(f, "waiting to see {outstanding}"),
            Self::InvalidStrategy { error } => write!(f, "invalid update strategy: {error}"),
            Self::Nodes(numbers) => write!(f, "{numbers}"),
        }
    }
}

/// `2 of 3 nodes available, 1 updated, 1 misscheduled`.
impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { desired, available, updated, misscheduled } = self;
        write!(f, "{available} of {desired} nodes available, {updated} updated")?;
        if *misscheduled > 0 {
            write!(f, ", {misscheduled} misscheduled")?;
        }
        Ok(())
    }
}

/// Why a DaemonSet is not for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    AnotherNode,
    /// The node lacks a label of the node selector.
    NodeSelector,
    NodeAffinity,
    /// The node has a taint that is not tolerated.
    Taint(Taint),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnotherNode => f.write_str("for another node"),
            Self::NodeSelector => f.write_str("outside of the node selector"),
            Self::NodeAffinity => f.write_str("outside of the node affinity"),
            Self::Taint(taint) => write!(f, "does not tolerate {taint}"),
        }
    }
}

/// Why one pod is created or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The node has none.
    Missing,
    /// The node has an old one, which goes once this one is available.
    Surge,
    /// It has failed, and if the next one fails, that one stays for a while.
    Failed(Pause),
    /// It has succeeded, but a daemon never ends.
    Succeeded,
    Duplicate,
    /// The DaemonSet is not for the node.
    Misplaced(Misfit),
    /// It is old and not ready, and there is a new one.
    NotReady,
    /// It is old, and the new one is available.
    Replaced,
    Outdated,
    /// There is no such node, so that the scheduler can never bind it.
    NodeGone,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::Surge => f.write_str("surge"),
            Self::Failed(_) => f.write_str("failed"),
            Self::Succeeded => f.write_str("succeeded"),
            Self::Duplicate => f.write_str("too many"),
            Self::Misplaced(misfit) => write!(f, "{misfit}"),
            Self::NotReady => f.write_str("outdated, not ready"),
            Self::Replaced => f.write_str("replaced"),
            Self::Outdated => f.write_str("outdated"),
            Self::NodeGone => f.write_str("no such node"),
        }
    }
}
