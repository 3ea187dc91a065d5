//! The reasons of decisions, for programs and in words.

use std::fmt;

use serde::Serialize;
use shared::api::time::Time;
use shared::working::decisions;

use crate::objects::Ready;
use crate::plan::gap::Gap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    Gone,
    Heard {
        /// Its condition `Ready`.
        ready: Ready,
        /// When it was last heard from.
        heard: Time,
        leaving: Leaving,
    },
    /// It was not heard from for its grace period.
    Silent {
        /// Its condition `Ready`.
        ready: Ready,
        /// When it was last heard from.
        heard: Time,
        leaving: Leaving,
    },
}

/// Whether the pods of a node have to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Leaving {
    No,
    Yes,
    /// They stay until it is the node's turn.
    Waits,
    /// No zone has a node that is ready, so all pods stay.
    AllDisrupted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Question {
    /// Whether its Lease was renewed, and the cache lags.
    Renewed {
        /// When the node was last heard from.
        heard: Time,
    },
    /// Which pods of a lost node may be ready.
    Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RoundReason {
    /// The process has not watched for a while.
    Gap { gap: Gap },
    AllDisrupted {
        /// How many nodes there are.
        nodes: usize,
    },
    /// A zone has a ready node again.
    Recovered {
        /// How many nodes there are.
        nodes: usize,
    },
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
    /// Its kubelet is not lost.
    NotLost,
    /// They are already marked.
    Marked,
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
            Self::Heard { ready, heard, leaving } => write!(f, "{ready}{leaving}, last heard from at {heard}"),
            Self::Silent { ready, heard, leaving } => write!(f, "{ready}{leaving}, not heard from since {heard}"),
        }
    }
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "",
            Self::Yes => ", its pods have to leave",
            Self::Waits => ", its pods stay until its turn",
            Self::AllDisrupted => ", its pods stay because no zone has a ready node",
        })
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renewed { heard } => write!(f, "not heard from since {heard}"),
            Self::Ready => f.write_str("its kubelet is lost"),
        }
    }
}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { gap } => write!(f, "{gap}"),
            Self::AllDisrupted { nodes } => write!(f, "no zone has a ready node, nodes: {nodes}"),
            Self::Recovered { nodes } => write!(f, "a node is ready again, nodes: {nodes}"),
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
