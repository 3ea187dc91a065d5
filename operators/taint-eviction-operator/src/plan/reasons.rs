//! The reasons of decisions, for programs and in words.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::time::Time;
use shared::working::decisions;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    Gone,
    BeingDeleted,
    /// It is not bound to a node.
    Unbound,
    /// Its node is gone, so only a pending deletion counts.
    NodeGone,
    /// Its node has no `NoExecute` taints.
    NotTainted,
    ToleratesForEver {
        taints: usize,
    },
    /// It tolerates the taints of its node for a while.
    Tolerates {
        /// The taint that it tolerates for the shortest time.
        taint: Text,
        until: Time,
    },
    /// It tolerated the taints of its node for a while, which is over.
    Tolerated {
        /// The taint that it tolerated for the shortest time.
        taint: Text,
        until: Time,
    },
    /// It does not tolerate a taint of its node.
    NotTolerated {
        taint: Text,
    },
}

/// Why pods of a node are synced, or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeReason {
    /// It has `NoExecute` taints.
    Tainted {
        taints: Vec<Text>,
        pods: usize,
    },
    NotTainted {
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
            Self::Unbound => f.write_str("is not bound to a node"),
            Self::NodeGone => f.write_str("its node is gone"),
            Self::NotTainted => f.write_str("its node has no NoExecute taints"),
            Self::ToleratesForEver { taints: 1 } => f.write_str("tolerates the taint of its node forever"),
            Self::ToleratesForEver { taints } => write!(f, "tolerates the {taints} taints of its node forever"),
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
                write!(f, "pods: {pods}, taints: {}", list(taints, Text::to_string))
            }
            Self::NotTainted { pods } => write!(f, "pods: {pods}, no NoExecute taints"),
        }
    }
}
