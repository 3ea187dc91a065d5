//! Whether a namespace is given its ServiceAccount: a value made from what was observed, and nothing else.
//!
//! Left out: changing an account that is there, whatever it looks like.
//!
//! Upstream: `syncNamespace`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.

use std::fmt;

use crate::objects::DEFAULT;
use crate::observe::Observed;

/// What becomes of a namespace, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Nothing(Reason),
    /// It gets its account, because it has none.
    Create,
}

/// Why there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is being deleted, or gone.
    NotActive,
    /// It has its account.
    HasAccount,
}

/// Decides for one namespace.
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
        match self {
            Self::Nothing(Reason::NotActive) => f.write_str("nothing (not active)"),
            Self::Nothing(Reason::HasAccount) => write!(f, "nothing ({DEFAULT} is there)"),
            Self::Create => write!(f, "create {DEFAULT} (not there)"),
        }
    }
}
