//! The reasons of decisions, for programs and in words.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::working::decisions;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// No node has the volume or needs it.
    Unused,
    /// By node.
    Nodes(Vec<(Text, PlaceReason)>),
    /// VolumeAttachments for these nodes were requested, and the cache does not show them.
    Unseen { nodes: Vec<Text> },
    /// These nodes gave the volume back, as far as the cache shows.
    Unverified { nodes: Vec<Text> },
}

impl decisions::Reason for Reason {}

/// Why something happens to the volume on one node, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PlaceReason {
    /// The node neither has the volume nor needs it.
    Unneeded,
    /// Its plugin is unknown.
    ForeignPlugin,
    /// No pod needs it, and the node has it mounted.
    Mounted {
        is_forced_later: bool,
    },
    /// No pod needs it, and the node that may have it mounted is gone.
    NodeGone {
        is_forced_later: bool,
    },
    /// No pod needs it, and the node has unmounted it.
    Unmounted,
    /// No pod needs it, and it leaves the node even if it is mounted.
    Forced(Forced),
    /// The status of the node has to stop naming it first.
    Withdrawing,
    /// The driver's attacher has to detach it.
    Detaching {
        error: Option<String>,
    },
    /// Pods have it, and it cannot be attached for them.
    Kept {
        pods: Vec<String>,
    },
    Attached {
        pods: Vec<String>,
    },
    Wanted {
        pods: Vec<String>,
    },
    WaitsForAttacher {
        driver: String,
    },
    AttachFailed {
        error: String,
    },
    /// Its VolumeAttachment is being deleted, and has to be made again.
    BeingDeleted,
    WaitsForDetach {
        node: Text,
    },
    /// Pods of two nodes want it.
    OtherIsFirst {
        node: Text,
    },
    /// Other nodes have it, and it is for one node only.
    UsedElsewhere {
        nodes: Vec<Text>,
        pods: Vec<String>,
    },
}

impl PlaceReason {
    /// Whether a detach makes progress, so that no event on the pods of other nodes has to say who has the volume.
    pub(super) const fn leaves(&self) -> bool {
        matches!(self, Self::Unmounted | Self::Withdrawing | Self::Forced(_) | Self::Detaching { error: None })
    }
}

/// Why a volume is detached even if it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Forced {
    /// The node is not ready, and no pod has needed the volume for six minutes.
    Timeout,
    OutOfService,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unused => f.write_str("no node has it or needs it"),
            Self::Nodes(nodes) => f.write_str(&list(nodes, |(node, reason)| format!("{node}: {reason}"))),
            Self::Unseen { nodes } => {
                write!(f, "requested for {}, and not in the cache", list(nodes, Text::to_string))
            }
            Self::Unverified { nodes } => {
                write!(f, "the cache shows it unmounted on {}", list(nodes, Text::to_string))
            }
        }
    }
}

impl fmt::Display for PlaceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = |is_forced_later| if is_forced_later { ", for six minutes at most" } else { "" };
        let pods = |pods: &Vec<String>| list(pods, String::clone);
        match self {
            Self::Unneeded => f.write_str("not needed"),
            Self::ForeignPlugin => f.write_str("its plugin is unknown"),
            Self::Mounted { is_forced_later } => {
                write!(f, "no pod needs it, and the node has it mounted{}", until(*is_forced_later))
            }
            Self::NodeGone { is_forced_later } => {
                write!(f, "no pod needs it, and the node is gone{}", until(*is_forced_later))
            }
            Self::Unmounted => f.write_str("no pod needs it, and it is not mounted"),
            Self::Forced(forced) => write!(f, "no pod needs it, and {forced}"),
            Self::Withdrawing => f.write_str("the node still reports it"),
            Self::Detaching { error: None } => f.write_str("waits for the driver to detach it"),
            Self::Detaching { error: Some(error) } => write!(f, "the driver cannot detach it: {error}"),
            Self::Kept { pods: of } => write!(f, "kept for {}", pods(of)),
            Self::Attached { pods: of } => write!(f, "attached for {}", pods(of)),
            Self::Wanted { pods: of } => write!(f, "wanted by {}", pods(of)),
            Self::WaitsForAttacher { driver } => write!(f, "waits for the attacher of {driver}"),
            Self::AttachFailed { error } => write!(f, "the driver cannot attach it: {error}"),
            Self::BeingDeleted => f.write_str("its VolumeAttachment is being deleted"),
            Self::WaitsForDetach { node } => write!(f, "waits until it is detached from {node}"),
            Self::OtherIsFirst { node } => write!(f, "waits for the attach to {node}"),
            Self::UsedElsewhere { nodes, pods: of } => {
                write!(f, "for one node only, and {} has it", list(nodes, Text::to_string))?;
                if of.is_empty() { Ok(()) } else { write!(f, " for {}", pods(of)) }
            }
        }
    }
}

impl fmt::Display for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "the node is not ready after six minutes",
            Self::OutOfService => "the node is out of service",
        })
    }
}
