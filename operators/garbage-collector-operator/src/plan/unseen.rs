//! Why nothing is decided about an object that no monitor has seen, in words.

use std::fmt;

use shared::working::decisions::{self, Reasoned};

use crate::observe::Unseen;

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unserved => f.write_str("nothing (its kind is not served)"),
            Self::NotFollowed => f.write_str("nothing (its kind is not followed: it is never collected)"),
            Self::Failing { error } => write!(f, "nothing (its kind cannot be followed: {error})"),
            Self::LeaseOfNode => f.write_str("nothing (Leases of kubelets are listed when a Node was deleted)"),
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
