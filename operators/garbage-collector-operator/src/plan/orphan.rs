//! Which dependents of an owner that is deleted with the policy Orphan lose which references.
//!
//! A dependent that the graph has not seen yet keeps its references, as upstream.

use std::fmt;

use serde::Serialize;
use shared::api::object::Uid;
use shared::working::decisions::{self, Reasoned};

use crate::graph::Graph;
use crate::objects::{Identity, ORPHAN};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The owner that is deleted without its dependents.
    pub owner: Identity,
    pub releases: Vec<Release>,
}

/// One dependent that loses its references to the owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    pub dependent: Identity,
    /// The owner's uid as it is written in the dependent's references.
    pub owners: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// Their owner has the finalizer that asks for it.
    Orphan {
        /// How many there are.
        dependents: usize,
    },
}

/// Decides for the owner of this uid; none if the graph no longer has it.
///
/// Upstream: `processAttemptToOrphanWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
pub fn plan(graph: &Graph, owner: Uid) -> Option<Plan> {
    let releases = graph
        .dependents(owner)
        .map(|dependent| Release { dependent: dependent.identity.clone(), owners: dependent.names_of(owner) })
        .collect();
    Some(Plan { owner: graph.node(owner)?.identity.clone(), releases })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.owner)?;
        match self.releases.len() {
            0 => {}
            count => write!(f, "orphan {count} dependents, ")?,
        }
        write!(f, "remove finalizer {ORPHAN} ({})", self.why())
    }
}

impl Plan {
    fn why(&self) -> Reason {
        Reason::Orphan { dependents: self.releases.len() }
    }
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Orphan { dependents: _ } = self;
        f.write_str("is deleted without its dependents")
    }
}
