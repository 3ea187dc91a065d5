//! Why a plan is what it is, and why each of its steps is made: values that programs read as JSON, and people as text.
//!
//! Left out: what follows from a reason, which is the other rooms'.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::names::{LABEL_VALUE_MAX_LENGTH, STATEFUL_SET_NAME_MAX_LENGTH};
use shared::api::pod::Phase;
use shared::api::selector::InvalidSelector;
use shared::controllers::rejections::Held;
use shared::working::decisions;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    InvalidSelector {
        error: InvalidSelector,
    },
    /// The StatefulSet is being deleted; its pods are the garbage collector's.
    BeingDeleted,
    Replicas(Numbers),
    /// One pod has to get further before others may come, go or be replaced.
    Waiting(Waiting),
    /// A pod is to be replaced, and a disruption budget does not let it go yet.
    Budget {
        pod: Text,
        message: String,
    },
}

/// How far a StatefulSet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    /// How many pods are asked for.
    pub wanted: i64,
    /// How many of those that are asked for are there.
    pub present: usize,
    /// How many of these are available, and not being deleted.
    pub available: usize,
    /// How many of these are of the update revision.
    pub updated: usize,
    /// How many more there are.
    pub condemned: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub pod: Text,
    pub until: Until,
    /// How far the StatefulSet is.
    #[serde(flatten)]
    pub numbers: Numbers,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Until {
    /// Gone: it is on its way out.
    Gone,
    Ready,
    Available,
    /// Replaced: it is of an earlier revision, and was never ready.
    Replaced,
    /// Gone: its node has rejected it, and another one of its template would be rejected too.
    HeldBack {
        held: Held,
    },
    /// Free of the claim that an earlier pod of its name has left.
    ClaimGone {
        claim: Text,
    },
    /// Of another StatefulSet: with the name of this one the apiserver refuses it.
    Renamed(LongLabel),
}

/// A label of a pod that is too long because the StatefulSet's name is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LongLabel {
    pub label: &'static str,
    pub length: usize,
}

impl fmt::Display for LongLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, length } = self;
        write!(
            f,
            "its label {label} would have {length} characters, more than {LABEL_VALUE_MAX_LENGTH}; use a name of at \
             most {STATEFUL_SET_NAME_MAX_LENGTH} characters"
        )
    }
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidSelector { error } => write!(f, "invalid selector: {error}"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::Replicas(numbers) => write!(f, "{numbers}"),
            Self::Waiting(Waiting { pod, until, numbers }) => {
                match until {
                    Until::Gone => write!(f, "waiting until {pod} is gone"),
                    Until::Ready => write!(f, "waiting until {pod} is ready"),
                    Until::Available => write!(f, "waiting until {pod} is available"),
                    Until::Replaced => write!(f, "waiting until {pod}, which was never ready, is replaced"),
                    Until::HeldBack { held } => write!(f, "waiting to replace {pod}, {held}"),
                    Until::ClaimGone { claim } => write!(f, "waiting until {claim} of an earlier {pod} is gone"),
                    Until::Renamed(label) => write!(f, "cannot create {pod}: {label}"),
                }?;
                write!(f, "; {numbers}")
            }
            Self::Budget { pod, message } => write!(f, "waiting until a budget lets {pod} go: {message}"),
        }
    }
}

/// `2 of 3 available, 1 updated, 1 too many`.
impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, present: _, available, updated, condemned } = self;
        write!(f, "{available} of {wanted} available, {updated} updated")?;
        if *condemned > 0 {
            write!(f, ", {condemned} too many")?;
        }
        Ok(())
    }
}

/// Why one pod is created, deleted or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Missing,
    /// It has ended, and another one is to take its place.
    Ended(Phase),
    /// Its ordinal is not asked for.
    Condemned,
    /// It is of another revision than this one.
    Outdated(Text),
    /// It is of another revision than this one, and keeps the rollout from going on because it never got ready.
    Stuck(Text),
    Pending,
    /// These parts of it are not as they are to be.
    Differs(Differences),
}

/// The parts of a pod that are not as they are to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    pub identity: bool,
    pub storage: bool,
    pub claim_owners: bool,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::Ended(phase) => write!(f, "{phase:?}"),
            Self::Condemned => f.write_str("too many"),
            Self::Outdated(revision) => write!(f, "not of {revision}"),
            Self::Stuck(revision) => write!(f, "never ready, not of {revision}"),
            Self::Pending => f.write_str("pending"),
            Self::Differs(Differences { identity, storage, claim_owners }) => {
                let parts = [(identity, "identity"), (storage, "volumes"), (claim_owners, "owners of its claims")];
                let parts: Vec<&str> = parts.iter().filter(|(differs, _)| **differs).map(|(_, part)| *part).collect();
                f.write_str(&parts.join(", "))
            }
        }
    }
}
