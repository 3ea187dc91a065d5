//! Why nodes are written, or not: as values for programs, and in words.
//!
//! Left out: why a kubelet is not well, which its own condition says.

use std::fmt;

use serde::Serialize;
use shared::api::time::Time;
use shared::runtime::decisions;

use crate::objects::Ready;
use crate::plan::gap::Gap;

/// Why a node is written, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// It is gone.
    Gone,
    /// It was heard of within its grace period.
    Heard {
        /// The condition.
        ready: Ready,
        /// When that was.
        heard: Time,
        /// Whether its pods have to leave.
        leaving: Leaving,
    },
    /// It was not.
    Silent {
        /// The condition.
        ready: Ready,
        /// When it was last heard of.
        heard: Time,
        /// Whether its pods have to leave.
        leaving: Leaving,
    },
}

/// Whether the pods of a node have to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Leaving {
    /// They stay.
    No,
    /// They have to.
    Yes,
    /// It is not the node's turn.
    Waits,
    /// No zone has a node that is ready, so all pods stay.
    AllDisrupted,
}

/// The question before a node becomes Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Question {
    /// Whether its Lease was renewed, and the cache is behind.
    Renewed {
        /// When it was last heard of.
        heard: Time,
    },
    /// Which pods of a lost node may be ready.
    Ready,
}

/// How the nodes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RoundReason {
    /// Nobody has watched for a while.
    Gap {
        /// Why.
        gap: Gap,
    },
    /// No zone has a node that is ready.
    AllDisrupted {
        /// How many nodes there are.
        nodes: usize,
    },
    /// One has, after none had.
    Recovered {
        /// How many nodes there are.
        nodes: usize,
    },
    /// All is as usual.
    Watched {
        /// How many nodes there are.
        nodes: usize,
        /// How many zones are disrupted.
        disrupted: usize,
    },
}

/// Why pods of a node are marked, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PodsReason {
    /// Its kubelet is there, or never was.
    NotLost,
    /// They are marked.
    Marked,
    /// Its kubelet is lost.
    Lost,
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Question {}
impl decisions::Reason for RoundReason {}
impl decisions::Reason for PodsReason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the node is gone"),
            Self::Heard { ready, heard, leaving } => write!(f, "{ready}{leaving}, heard of at {heard}"),
            Self::Silent { ready, heard, leaving } => write!(f, "{ready}{leaving}, not heard of since {heard}"),
        }
    }
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "",
            Self::Yes => ", its pods have to leave",
            Self::Waits => ", its pods stay until it is its turn",
            Self::AllDisrupted => ", its pods stay as no zone has a ready node",
        })
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renewed { heard } => write!(f, "not heard of since {heard}"),
            Self::Ready => f.write_str("its kubelet is lost"),
        }
    }
}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { gap } => write!(f, "{gap}"),
            Self::AllDisrupted { nodes } => write!(f, "no zone has a ready node, nodes: {nodes}"),
            Self::Recovered { nodes } => write!(f, "a node is ready after none was, nodes: {nodes}"),
            Self::Watched { nodes, disrupted } => write!(f, "nodes: {nodes}, disrupted zones: {disrupted}"),
        }
    }
}

impl fmt::Display for PodsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotLost => "its kubelet is not lost",
            Self::Marked => "they were marked when its kubelet was lost",
            Self::Lost => "its kubelet is lost",
        })
    }
}
