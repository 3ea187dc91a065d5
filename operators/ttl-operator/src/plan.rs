//! Which time to live a Node's annotation gets.
//!
//! Upstream: `pkg/controller/ttl/ttl_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::object::Uid;
use shared::working::decisions::{self, Reasoned};

use crate::objects::Ttl;
use crate::observe::Observed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    Annotate { ttl_seconds: u32, uid: Uid, reason: Reason },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    Right {
        ttl_seconds: u32,
        /// How many Nodes there are.
        nodes: usize,
    },
    Missing {
        /// How many Nodes there are.
        nodes: usize,
    },
    /// The annotation is not a number.
    Unreadable {
        /// How many Nodes there are.
        nodes: usize,
    },
    Different {
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
            Self::Unreadable { nodes } => write!(f, "annotation is not a number, nodes: {nodes}"),
            Self::Different { ttl_seconds, nodes } => write!(f, "has {ttl_seconds}, nodes: {nodes}"),
        }
    }
}
