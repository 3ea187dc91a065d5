//! Whether a PersistentVolumeClaim gets, keeps or loses its finalizer.
//!
//! Upstream: `processPVC`, `pkg/controller/volume/pvcprotection/pvc_protection_controller.go`.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use shared::api::list::list;
use shared::controllers::protection::State;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::PROTECTION;
use crate::objects::pod::Pod;
use crate::observe::Observed;

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Write nothing until something changes.
    Keep(Reason),
    /// Write nothing, and check again: the cache may never show that these pods have gone.
    Recheck {
        pods: Vec<String>,
    },
    Add {
        preconditions: Preconditions,
    },
    Remove {
        preconditions: Preconditions,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// It is not being deleted and has the finalizer.
    Protected,
    /// It is not being deleted and lacks the finalizer.
    Unprotected,
    Used {
        pods: Vec<String>,
    },
    /// It is being deleted, and pods use it that are not in the cache.
    UsedByOthers {
        pods: Vec<String>,
    },
    /// It is being deleted, and no pod in the cache uses it.
    NotSeen,
    /// It is being deleted, and no pod uses it.
    Unused,
    /// It is being deleted without the finalizer.
    LetGo,
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Recheck { pods } => Reason::UsedByOthers { pods: pods.clone() },
            Self::Add { preconditions: _ } => Reason::Unprotected,
            Self::Remove { preconditions: _ } => Reason::Unused,
        }
    }
}

/// Plans the next stage. The cache can show that a pod uses a claim; only a live list shows that none does.
///
/// Upstream: `isBeingUsedWith`.
pub fn plan(observed: &Observed) -> Next {
    let Observed { claim, cached, live } = observed;
    let preconditions = Preconditions::of(&claim.metadata);
    Next::Execute(match PROTECTION.state(&claim.metadata) {
        State::Unprotected => Plan::Add { preconditions },
        State::Protected => Plan::Keep(Reason::Protected),
        State::LetGo => Plan::Keep(Reason::LetGo),
        State::Candidate if !cached.is_empty() => Plan::Keep(Reason::Used { pods: names(cached) }),
        State::Candidate => match live {
            None => return Next::Ask(LiveRead { step: "list the pods of its namespace", reason: Reason::NotSeen }),
            Some(pods) if pods.is_empty() => Plan::Remove { preconditions },
            Some(pods) => Plan::Recheck { pods: names(pods) },
        },
    })
}

fn names(pods: &[Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.metadata.name().to_owned()).collect()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Recheck { .. } => write!(f, "keep and check again ({reason})"),
            Self::Add { .. } => write!(f, "add the finalizer ({reason})"),
            Self::Remove { .. } => write!(f, "remove the finalizer ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protected => f.write_str("has the finalizer"),
            Self::Unprotected => f.write_str("lacks the finalizer"),
            Self::Used { pods } => write!(f, "used by pods: {}", list(pods, String::clone)),
            Self::UsedByOthers { pods } => {
                write!(f, "used by pods that are not in the cache: {}", list(pods, String::clone))
            }
            Self::NotSeen => f.write_str("no pod in the cache uses it"),
            Self::Unused => f.write_str("no pod uses it"),
            Self::LetGo => f.write_str("being deleted without the finalizer"),
        }
    }
}
