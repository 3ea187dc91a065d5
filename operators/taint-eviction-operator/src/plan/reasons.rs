//! Why pods stay or go: as values for programs, and in words.
//!
//! Left out: why a node is tainted. No taint says so.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::time::Time;
use shared::runtime::decisions;

/// Why a pod stays or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is gone.
    Gone,
    /// It is marked, and being deleted.
    BeingDeleted,
    /// No node has it.
    Unbound,
    /// Its node is gone, so nothing new is decided.
    NodeGone,
    /// Its node ends no pods.
    NotTainted,
    /// It tolerates the taints of its node for ever.
    ToleratesForEver {
        /// How many there are.
        taints: usize,
    },
    /// It tolerates the taints of its node for a while.
    Tolerates {
        /// Of these the one that it tolerates for the shortest time.
        taint: Text,
        /// When that is over.
        until: Time,
    },
    /// It has tolerated the taints of its node, and the time is over.
    Tolerated {
        /// Of these the one that it tolerates for the shortest time.
        taint: Text,
        /// Since when that is over.
        until: Time,
    },
    /// It does not tolerate a taint of its node.
    NotTolerated {
        /// This one.
        taint: Text,
    },
}

/// Why pods of a node are synced, or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeReason {
    /// It ends pods.
    Tainted {
        /// By these taints.
        taints: Vec<Text>,
        /// So many pods are there.
        pods: usize,
    },
    /// It does not.
    NotTainted {
        /// So many pods are there, as far as they are followed.
        pods: usize,
    },
}

impl decisions::Reason for Reason {}
impl decisions::Reason for NodeReason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the pod is gone"),
            Self::BeingDeleted => f.write_str("marked, and being deleted"),
            Self::Unbound => f.write_str("no node has it"),
            Self::NodeGone => f.write_str("its node is gone"),
            Self::NotTainted => f.write_str("its node ends no pods"),
            Self::ToleratesForEver { taints: 1 } => f.write_str("tolerates the taint of its node for ever"),
            Self::ToleratesForEver { taints } => write!(f, "tolerates the {taints} taints of its node for ever"),
            Self::Tolerates { taint, until } => write!(f, "tolerates {taint} until {until}"),
            Self::Tolerated { taint, until } => write!(f, "tolerated {taint} until {until}"),
            Self::NotTolerated { taint } => write!(f, "does not tolerate {taint}"),
        }
    }
}

impl fmt::Display for NodeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tainted { taints, pods } => {
                write!(f, "of {pods} on a node with the taints {}", list(taints, Text::to_string))
            }
            Self::NotTainted { pods } => write!(f, "of {pods} on a node that ends no pods"),
        }
    }
}
