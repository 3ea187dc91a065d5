//! Why nothing is decided about an object that no monitor has seen, for people who ask about it.
//!
//! Left out: whether it exists. Nobody is asked for what nobody depends on.

use std::fmt;

use serde::Serialize;
use shared::runtime::decisions::{self, Reasoned};

/// Why no monitor has seen an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unseen {
    /// Its kind is not served.
    Unserved,
    /// Objects of its kind cannot be deleted, listed or watched, or are never collected, as Events.
    NotFollowed,
    /// Its kind cannot be listed or watched at the moment.
    Failing {
        /// Why.
        error: String,
    },
    /// It is the Lease of a kubelet: these are listed when a Node has gone.
    LeaseOfNode,
    /// It has not come yet, is gone, or never was.
    NotSeen,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unserved => f.write_str("nothing (its kind is not served)"),
            Self::NotFollowed => f.write_str("nothing (its kind is not followed: it is never collected)"),
            Self::Failing { error } => write!(f, "nothing (its kind cannot be followed: {error})"),
            Self::LeaseOfNode => f.write_str("nothing (Leases of kubelets are looked at when a Node has gone)"),
            Self::NotSeen => f.write_str("nothing (no monitor has seen it)"),
        }
    }
}

impl decisions::Reason for Unseen {}

impl Reasoned for Unseen {
    fn reason(&self) -> impl decisions::Reason {
        self
    }
}
