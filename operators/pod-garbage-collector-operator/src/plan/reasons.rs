//! The reasons of decisions, for programs and in words.

use std::fmt;

use serde::Serialize;
use shared::working::decisions::{self, Reasoned};

use crate::objects::{DeletionReason, excess};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RoundReason {
    Found {
        terminated: usize,
        /// Pods being deleted on nodes that are out of service.
        out_of_service: usize,
        /// Pods being deleted that were never bound to a node.
        unscheduled: usize,
    },
    Unread {
        /// The reasons for which their pods would be deleted.
        reasons: Vec<DeletionReason>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BindingsReason {
    AllThere,
    /// Some nodes do not exist.
    Missing {
        nodes: usize,
        first: Vec<String>,
    },
}

/// Why the pods of a node that was missing stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    IsBack,
    NoPods,
    /// The apiserver has the node, although the cache does not.
    Exists,
}

/// Why the pods of a node that was missing stay, or are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingReason {
    IsBack,
    NoPods,
    /// The apiserver has the node, although the cache does not.
    Exists,
    Gone {
        /// How many pods are bound to it.
        pods: usize,
    },
}

impl From<KeepReason> for MissingReason {
    fn from(reason: KeepReason) -> Self {
        match reason {
            KeepReason::IsBack => Self::IsBack,
            KeepReason::NoPods => Self::NoPods,
            KeepReason::Exists => Self::Exists,
        }
    }
}

/// The state of a node by the cache alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeOutlook {
    Exists,
    /// It is not in the cache: a sync reads its pods and the node.
    NotSeen,
}

/// The state of a pod by the cache alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PodOutlook {
    /// It has terminated, and not too many have.
    Stays {
        ended: usize,
        /// How many may stay.
        threshold: i32,
    },
    /// It has terminated, and too many have.
    TooMany {
        ended: usize,
        /// How many may stay.
        threshold: i32,
    },
    /// There is no threshold, so terminated pods are not followed.
    NotCounted,
    /// It is not in the cache of terminated pods.
    NotEnded,
}

/// The outlook of a pod; `is_ended` says whether the cache of terminated pods has it.
pub fn pod_outlook(is_ended: bool, ended: usize, threshold: i32) -> PodOutlook {
    if threshold <= 0 {
        PodOutlook::NotCounted
    } else if !is_ended {
        PodOutlook::NotEnded
    } else if excess(ended, threshold) > 0 {
        PodOutlook::TooMany { ended, threshold }
    } else {
        PodOutlook::Stays { ended, threshold }
    }
}

impl decisions::Reason for DeletionReason {}
impl decisions::Reason for RoundReason {}
impl decisions::Reason for BindingsReason {}
impl decisions::Reason for MissingReason {}
impl decisions::Reason for NodeOutlook {}
impl decisions::Reason for PodOutlook {}

impl Reasoned for NodeOutlook {
    fn reason(&self) -> impl decisions::Reason {
        self
    }
}

impl Reasoned for PodOutlook {
    fn reason(&self) -> impl decisions::Reason {
        self
    }
}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { terminated: 0, out_of_service: 0, unscheduled: 0 } => {
                f.write_str("no stuck pods, not too many terminated ones")
            }
            Self::Found { terminated, out_of_service, unscheduled } => {
                write!(f, "{terminated} terminated, {out_of_service} out-of-service, {unscheduled} unscheduled")
            }
            Self::Unread { reasons } => {
                let reasons: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
                write!(f, "cannot read which pods are {}", reasons.join(", "))
            }
        }
    }
}

impl fmt::Display for BindingsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllThere => "all nodes exist",
            Self::Missing { .. } => "missing",
        })
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IsBack => "the node is back",
            Self::NoPods => "no pods",
            Self::Exists => "the node exists",
            Self::Gone { pods: _ } => "the node is gone",
        })
    }
}

impl fmt::Display for NodeOutlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "keep the pods (the node exists)",
            Self::NotSeen => "read its pods and the node; delete them if it is gone (not in the cache of nodes)",
        })
    }
}

impl fmt::Display for PodOutlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stays { ended, threshold } => {
                write!(f, "keep (terminated pods: {ended}, threshold: {threshold})")
            }
            Self::TooMany { ended, threshold } => write!(
                f,
                "the next round deletes the oldest, evicted ones first (terminated pods: {ended}, threshold: {threshold})"
            ),
            Self::NotCounted => f.write_str("each round reads the stuck pods (no threshold for terminated ones)"),
            Self::NotEnded => f.write_str("each round reads the stuck pods (not in the cache of terminated ones)"),
        }
    }
}
