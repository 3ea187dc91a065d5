//! Why pods go or stay: as values for programs, and in words.
//!
//! Left out: what a round alone can tell of a pod, for it is read live.

use std::fmt;

use serde::Serialize;
use shared::runtime::decisions::{self, Reasoned};

use super::excess;

/// Why a pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
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

/// The result of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RoundReason {
    /// All that it looked for could be read.
    Found {
        /// Ended pods that are too many.
        terminated: usize,
        /// Pods being deleted on nodes out of service.
        out_of_service: usize,
        /// Pods being deleted that no node ever had.
        unscheduled: usize,
    },
    /// Some could not be read, and are left out.
    Unread {
        /// The reasons for which these would be deleted.
        reasons: Vec<Reason>,
    },
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BindingsReason {
    /// All nodes are there to which pods are bound.
    AllThere,
    /// Some are not.
    Missing {
        /// How many.
        nodes: usize,
        /// The names of the first.
        first: Vec<String>,
    },
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

/// Why the pods of a node that was missing stay, or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingReason {
    /// The node is there.
    IsBack,
    /// There are none.
    NoPods,
    /// The cache does not have the node, and the apiserver does.
    Exists,
    /// The node is gone.
    Gone {
        /// So many are bound to it.
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
    /// It is there, and no pod goes for its sake.
    Exists,
    /// None of this name is: a sync reads its pods and asks for it.
    NotSeen,
}

/// The state of a pod by the cache alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PodOutlook {
    /// It has ended, and as many may stay.
    Stays {
        /// So many have ended.
        ended: usize,
        /// So many may stay.
        threshold: i32,
    },
    /// It has ended, and too many have.
    TooMany {
        /// So many have ended.
        ended: usize,
        /// So many may stay.
        threshold: i32,
    },
    /// Any number of ended pods may stay, and none is followed.
    NotCounted,
    /// No ended pod of this name is followed.
    NotEnded,
}

/// The outlook of a pod; `is_ended` says whether the cache of ended pods has it.
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

impl decisions::Reason for Reason {}
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { terminated: 0, out_of_service: 0, unscheduled: 0 } => {
                f.write_str("nothing is stuck, not too much has ended")
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
            Self::AllThere => "all nodes are there",
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
            Self::Exists => "keep the pods (the node is there)",
            Self::NotSeen => "read its pods, and delete them if the apiserver has no such node (none is followed)",
        })
    }
}

impl fmt::Display for PodOutlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stays { ended, threshold } => {
                write!(f, "keep (has ended, as {ended} have, and {threshold} may stay)")
            }
            Self::TooMany { ended, threshold } => write!(
                f,
                "the oldest go with the next round, evicted ones first (has ended, as {ended} have, and {threshold} may \
                 stay)"
            ),
            Self::NotCounted => {
                f.write_str("each round reads which pods are stuck (any number of ended ones may stay)")
            }
            Self::NotEnded => {
                f.write_str("each round reads which pods are stuck (has not ended, as far as is followed)")
            }
        }
    }
}
