//! Whether a policy is checked, and what its status says then.
//!
//! Upstream: `reconcile`, `pkg/controller/validatingadmissionpolicystatus/controller.go`.

pub mod check;

use std::fmt;

use serde::Serialize;
use shared::api::object::Uid;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::observe::{Live, Observed};
use check::{Findings, Warning};

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Nothing(Reason),
    Apply { uid: Uid, generation: i64, warnings: Vec<Warning>, reason: Reason },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// Its status is about this generation.
    Checked { generation: i64 },
    /// It was deleted meanwhile.
    Gone,
    #[serde(rename_all = "camelCase")]
    Found {
        /// How many expressions are wrong for a kind.
        warnings: usize,
        /// Of how many kinds the schema is known.
        kinds: usize,
        /// Of how many kinds it is not.
        unknown_kinds: usize,
        /// How many times an expression could not be checked.
        undecided: usize,
        /// How many warnings the status has no room for.
        omitted: usize,
    },
}

/// Why a policy is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    NotChecked { generation: i64, checked: i64 },
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Question {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) | Self::Apply { reason, .. } => reason,
        }
    }
}

/// Plans the reads for a policy that has not been checked.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Question>> {
    let Observed { policy, live } = observed;
    let is_read = !matches!(live, Live::NotRead);
    (!is_read && !policy.is_checked()).then(|| LiveRead {
        step: "read the policy and the schemas of its kinds",
        reason: Question::NotChecked {
            generation: policy.metadata.generation,
            checked: policy.status.observed_generation,
        },
    })
}

/// `findings` are those of the live policy; none if it was not read.
pub fn plan(observed: &Observed, findings: Findings) -> Plan {
    let Observed { policy, live } = observed;
    let live = match live {
        Live::NotRead => return Plan::Nothing(Reason::Checked { generation: policy.metadata.generation }),
        Live::Gone => return Plan::Nothing(Reason::Gone),
        Live::Policy { policy, schemas: _ } => policy,
    };
    let Findings { warnings, kinds, unknown_kinds, undecided, omitted } = findings;
    let reason = Reason::Found { warnings: warnings.len(), kinds, unknown_kinds, undecided, omitted };
    Plan::Apply { uid: live.metadata.uid, generation: live.metadata.generation, warnings, reason }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(reason) => write!(f, "nothing ({reason})"),
            Self::Apply { uid: _, generation, warnings: _, reason } => {
                write!(f, "apply the status of generation {generation} ({reason})")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checked { generation } => write!(f, "generation {generation} is checked"),
            Self::Gone => f.write_str("deleted"),
            Self::Found { warnings, kinds, unknown_kinds, undecided, omitted } => {
                write!(f, "{warnings} warnings for {kinds} kinds")?;
                for (count, what) in [
                    (unknown_kinds, "kinds without a schema"),
                    (undecided, "expressions that cannot be checked"),
                    (omitted, "warnings that do not fit"),
                ] {
                    if *count > 0 {
                        write!(f, ", {count} {what}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::NotChecked { generation, checked } = self;
        write!(f, "generation {generation} is not checked, {checked} is")
    }
}
