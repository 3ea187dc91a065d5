//! Whether a PersistentVolume gets, keeps or loses its finalizer.
//!
//! Upstream: `processPV`, `pkg/controller/volume/pvprotection/pv_protection_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::controllers::protection::State;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{LiveVolume, PROTECTION};
use crate::observe::{Live, Observed};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    Add {
        preconditions: Preconditions,
    },
    Remove {
        /// The state that was read live: a volume that is bound meanwhile stays.
        preconditions: Preconditions,
        phase: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// It is not being deleted and has the finalizer.
    Protected,
    /// It is not being deleted and lacks the finalizer.
    Unprotected,
    BeingDeleted,
    Bound {
        /// `namespace/name` of its claim; none if it names none.
        claim: Option<String>,
    },
    /// It is being deleted and not bound.
    NotBound {
        phase: String,
    },
    /// It is being deleted without the finalizer.
    LetGo,
    /// The apiserver does not have it any more.
    Gone,
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Add { preconditions: _ } => Reason::Unprotected,
            Self::Remove { preconditions: _, phase } => Reason::NotBound { phase: phase.clone() },
        }
    }
}

pub fn plan(observed: &Observed) -> Next {
    let Observed { volume, live } = observed;
    let kept = |reason| Next::Execute(Plan::Keep(reason));
    match PROTECTION.state(&volume.metadata) {
        State::Unprotected => Next::Execute(Plan::Add { preconditions: Preconditions::of(&volume.metadata) }),
        State::Protected => kept(Reason::Protected),
        State::LetGo => kept(Reason::LetGo),
        State::Candidate => match live {
            Live::Unread => Next::Ask(LiveRead { step: "read its phase", reason: Reason::BeingDeleted }),
            Live::Gone => kept(Reason::Gone),
            Live::Read(live) => Next::Execute(plan_deletion(live)),
        },
    }
}

fn plan_deletion(live: &LiveVolume) -> Plan {
    if PROTECTION.state(&live.metadata) != State::Candidate {
        return Plan::Keep(Reason::LetGo);
    }
    if live.is_bound() {
        let claim = live.claim().map(|claim| claim.as_str().to_owned());
        return Plan::Keep(Reason::Bound { claim });
    }
    Plan::Remove { preconditions: Preconditions::of(&live.metadata), phase: live.status.phase.clone() }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
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
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::Bound { claim: Some(claim) } => write!(f, "bound to claim {claim}"),
            Self::Bound { claim: None } => f.write_str("bound to a claim that it does not name"),
            Self::NotBound { phase } if phase.is_empty() => f.write_str("has no phase yet"),
            Self::NotBound { phase } => write!(f, "phase is {phase}"),
            Self::LetGo => f.write_str("being deleted without the finalizer"),
            Self::Gone => f.write_str("gone already"),
        }
    }
}
