//! Which time to live a Node is told: a value made from the Node and the number of all Nodes, and nothing else.
//!
//! Left out: whether a kubelet heeds it. Most watch what they need, and few ask for it again after a time.
//!
//! Upstream: `pkg/controller/ttl/ttl_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::object::Uid;
use shared::runtime::decisions::{self, Reasoned};

use crate::objects::Ttl;
use crate::observe::Observed;

/// A range of numbers of Nodes, and what is right in it. Neighbours overlap, so that a cluster at the edge of one
/// does not go to and fro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    min: usize,
    max: usize,
    ttl_seconds: u32,
}

const SMALLEST: Boundary = Boundary { min: 0, max: 100, ttl_seconds: 0 };

/// Upstream: `ttlBoundaries`.
const BOUNDARIES: [Boundary; 5] = [
    SMALLEST,
    Boundary { min: 90, max: 500, ttl_seconds: 15 },
    Boundary { min: 450, max: 1000, ttl_seconds: 30 },
    Boundary { min: 900, max: 2000, ttl_seconds: 60 },
    Boundary { min: 1800, max: usize::MAX, ttl_seconds: 300 },
];

/// The boundary of an empty cluster.
impl Default for Boundary {
    fn default() -> Self {
        SMALLEST
    }
}

impl Boundary {
    /// The boundary for this number of Nodes in a cluster that was within this one: the same for as long as it can be,
    /// and then the nearest.
    ///
    /// Upstream: `addNode` and `deleteNode`, which see one Node at a time, and so never pass over a boundary.
    #[must_use]
    pub fn after(self, nodes: usize) -> Self {
        let nearest = if nodes > self.max {
            BOUNDARIES.iter().find(|higher| nodes <= higher.max)
        } else {
            BOUNDARIES.iter().rfind(|lower| lower.min <= self.min && nodes >= lower.min)
        };
        nearest.copied().unwrap_or(self)
    }

    /// For how many seconds a kubelet may cache an object.
    pub fn ttl_seconds(self) -> u32 {
        self.ttl_seconds
    }
}

/// The decision about a Node, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing is written.
    Keep(Reason),
    /// It is told another time to live.
    Annotate {
        /// This one.
        ttl_seconds: u32,
        /// This very Node.
        uid: Uid,
        /// Why.
        reason: Reason,
    },
}

/// Why a Node is told a time to live, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// It has the right one.
    Right {
        /// Which it has.
        ttl_seconds: u32,
        /// How many Nodes there are.
        nodes: usize,
    },
    /// It has none.
    Missing {
        /// How many Nodes there are.
        nodes: usize,
    },
    /// It has one that is no number.
    Unreadable {
        /// How many Nodes there are.
        nodes: usize,
    },
    /// It has another.
    Different {
        /// Which it has.
        ttl_seconds: i64,
        /// How many Nodes there are.
        nodes: usize,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) | Self::Annotate { reason, .. } => *reason,
        }
    }
}

/// Decides for one Node.
///
/// Upstream: `updateNodeIfNeeded`.
pub fn plan(observed: &Observed) -> Plan {
    let Observed { node, nodes, boundary } = observed;
    let (nodes, ttl_seconds) = (*nodes, boundary.ttl_seconds());
    let reason = match node.metadata.annotations {
        Ttl::Seconds(found) if found == i64::from(ttl_seconds) => {
            return Plan::Keep(Reason::Right { ttl_seconds, nodes });
        }
        Ttl::Seconds(found) => Reason::Different { ttl_seconds: found, nodes },
        Ttl::Unreadable => Reason::Unreadable { nodes },
        Ttl::Missing => Reason::Missing { nodes },
    };
    Plan::Annotate { ttl_seconds, uid: node.metadata.uid, reason }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(reason) => write!(f, "keep ({reason})"),
            Self::Annotate { ttl_seconds, uid: _, reason } => write!(f, "annotate {ttl_seconds} ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right { ttl_seconds, nodes } => write!(f, "has {ttl_seconds}, nodes: {nodes}"),
            Self::Missing { nodes } => write!(f, "has none, nodes: {nodes}"),
            Self::Unreadable { nodes } => write!(f, "has what is no number, nodes: {nodes}"),
            Self::Different { ttl_seconds, nodes } => write!(f, "has {ttl_seconds}, nodes: {nodes}"),
        }
    }
}
