//! Whether a VolumeAttributesClass gets, keeps or loses its finalizer.
//!
//! Upstream: `processVAC`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::controllers::protection::State;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::PROTECTION;
use crate::observe::{Observed, Users};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Write nothing until something changes.
    Keep(Reason),
    /// Write nothing, and check again: the caches may never show that these let it go.
    Recheck {
        users: Users,
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
    /// It is being deleted, and volumes or claims name it.
    Used {
        volumes: Vec<String>,
        /// `namespace/name` of each claim.
        claims: Vec<String>,
    },
    /// It is being deleted, and volumes or claims name it that are not in the caches.
    UsedByOthers {
        volumes: Vec<String>,
        /// `namespace/name` of each claim.
        claims: Vec<String>,
    },
    /// It is being deleted, and nothing in the caches names it.
    NotSeen,
    Unused,
    /// It is being deleted without the finalizer.
    LetGo,
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Recheck { users: Users { volumes, claims } } => {
                Reason::UsedByOthers { volumes: volumes.clone(), claims: claims.clone() }
            }
            Self::Add { preconditions: _ } => Reason::Unprotected,
            Self::Remove { preconditions: _ } => Reason::Unused,
        }
    }
}

/// Plans the next stage. The caches can show that something names a class; only live lists show that nothing does.
///
/// Upstream relies on its caches.
pub fn plan(observed: &Observed) -> Next {
    let Observed { class, cached, live } = observed;
    let preconditions = Preconditions::of(&class.metadata);
    Next::Execute(match PROTECTION.state(&class.metadata) {
        State::Unprotected => Plan::Add { preconditions },
        State::Protected => Plan::Keep(Reason::Protected),
        State::LetGo => Plan::Keep(Reason::LetGo),
        State::Candidate if !cached.is_empty() => {
            let Users { volumes, claims } = cached.clone();
            Plan::Keep(Reason::Used { volumes, claims })
        }
        State::Candidate => match live {
            None => return Next::Ask(LiveRead { step: "list claims and volumes", reason: Reason::NotSeen }),
            Some(users) if users.is_empty() => Plan::Remove { preconditions },
            Some(users) => Plan::Recheck { users: users.clone() },
        },
    })
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
            Self::Used { volumes, claims } => write!(f, "named by {}", users(volumes, claims)),
            Self::UsedByOthers { volumes, claims } => {
                write!(f, "named by what is not in the caches: {}", users(volumes, claims))
            }
            Self::NotSeen => f.write_str("nothing in the caches names it"),
            Self::Unused => f.write_str("nothing names it"),
            Self::LetGo => f.write_str("being deleted without the finalizer"),
        }
    }
}

/// `volumes: a, b; claims: default/c`.
fn users(volumes: &[String], claims: &[String]) -> String {
    let part =
        |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what}: {}", list(names, String::clone)));
    let parts = [part("volumes", volumes), part("claims", claims)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
