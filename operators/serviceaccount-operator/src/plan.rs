//! Whether a namespace gets its ServiceAccount. An existing account is never changed.
//!
//! Upstream: `syncNamespace`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::working::decisions::{self, Reasoned};

use crate::objects::DEFAULT;
use crate::observe::Observed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Nothing(Reason),
    Create,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    NotActive,
    HasAccount,
    NoAccount,
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => *reason,
            Self::Create => Reason::NoAccount,
        }
    }
}

pub fn plan(observed: &Observed) -> Plan {
    let Observed { namespace: _, is_active, has_account } = observed;
    if !is_active {
        Plan::Nothing(Reason::NotActive)
    } else if *has_account {
        Plan::Nothing(Reason::HasAccount)
    } else {
        Plan::Create
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Nothing(_) => write!(f, "nothing ({reason})"),
            Self::Create => write!(f, "create {DEFAULT} ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotActive => f.write_str("not active"),
            Self::HasAccount => write!(f, "{DEFAULT} is there"),
            Self::NoAccount => f.write_str("not there"),
        }
    }
}
