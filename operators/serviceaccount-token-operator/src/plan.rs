//! Whether a token's Secret is filled in, kept or deleted. A plan never contains the token itself.
//!
//! Upstream: `syncSecret` and `generateTokenIfNeeded`, `pkg/controller/serviceaccount/tokens_controller.go`.

pub mod jwt;
pub mod reference;

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{CA_CERT, NAMESPACE, TOKEN, Token};
use crate::observe::{Account, Observed};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    Fill {
        lacks: Lacks,
        account: Uid,
        /// The observed state: values written meanwhile are not overwritten.
        preconditions: Preconditions,
    },
    Delete {
        reason: Reason,
        /// The observed state: a Secret that has just been given another account stays.
        preconditions: Preconditions,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lacks {
    /// The token; an existing one is not checked.
    pub token: bool,
    /// The namespace; an existing one is not checked.
    pub namespace: bool,
    pub ca: bool,
}

impl Lacks {
    /// The values that a Secret lacks, given the current CA. If that is unknown, no Secret lacks it.
    ///
    /// Upstream: `secretUpdateNeeded`.
    fn of(token: &Token, ca: Option<&Text>) -> Self {
        let is_other = ca.is_some_and(|ca| token.ca.as_ref() != Some(ca));
        Self { token: !token.has_token, namespace: !token.has_namespace, ca: is_other }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    Off,
    BeingDeleted,
    NoName,
    Complete,
    Incomplete {
        lacks: Lacks,
    },
    Immutable {
        lacks: Lacks,
    },
    /// The cache does not have the account that it names.
    NotSeen {
        account: Text,
    },
    Ended {
        account: Text,
    },
    NoAccount {
        account: Text,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) | Self::Delete { reason, preconditions: _ } => reason.clone(),
            Self::Fill { lacks, account: _, preconditions: _ } => Reason::Incomplete { lacks: *lacks },
        }
    }
}

/// Plans to read an account that the cache does not have: a missing cache entry alone deletes no token.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Reason>> {
    let Observed { token, account, ca: _ } = observed;
    let is_open = kept(token).is_none() && *account == Account::NotSeen;
    let reason = Reason::NotSeen { account: token.metadata.annotations.name.clone() };
    is_open.then_some(LiveRead { step: "read its ServiceAccount", reason })
}

pub fn plan(observed: &Observed) -> Plan {
    let Observed { token, account, ca } = observed;
    if let Some(reason) = kept(token) {
        return Plan::Keep(reason);
    }
    let metadata = &token.metadata;
    let preconditions = Preconditions::of(metadata);
    let named = || metadata.annotations.name.clone();
    let account = match *account {
        Account::Exists(uid) => uid,
        Account::NotSeen => return Plan::Keep(Reason::NotSeen { account: named() }),
        Account::Deleted => return Plan::Delete { reason: Reason::Ended { account: named() }, preconditions },
        Account::Missing => return Plan::Delete { reason: Reason::NoAccount { account: named() }, preconditions },
    };
    let lacks = Lacks::of(token, ca.as_ref());
    if lacks == Lacks::default() {
        Plan::Keep(Reason::Complete)
    } else if token.is_immutable {
        Plan::Keep(Reason::Immutable { lacks })
    } else {
        Plan::Fill { lacks, account, preconditions }
    }
}

/// Why a Secret is kept for any account.
fn kept(token: &Token) -> Option<Reason> {
    if token.metadata.is_being_deleted() {
        Some(Reason::BeingDeleted)
    } else if token.metadata.annotations.name.is_empty() {
        Some(Reason::NoName)
    } else {
        None
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Fill { .. } => write!(f, "fill in ({reason})"),
            Self::Delete { .. } => write!(f, "delete ({reason})"),
        }
    }
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, namespace, ca } = *self;
        let lacks = [(token, "no", TOKEN), (namespace, "no", NAMESPACE), (ca, "no current", CA_CERT)];
        let lacks = lacks.into_iter().filter(|(is_so, _, _)| *is_so).map(|(_, how, what)| format!("{how} {what}"));
        f.write_str(&lacks.collect::<Vec<String>>().join(", "))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("--service-account-private-key-file is not set"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoName => f.write_str("names no ServiceAccount"),
            Self::Complete => f.write_str("complete"),
            Self::Incomplete { lacks } => write!(f, "{lacks}"),
            Self::Immutable { lacks } => write!(f, "{lacks}, but it is immutable"),
            Self::NotSeen { account } => write!(f, "ServiceAccount {account} is not in the cache"),
            Self::Ended { account } => write!(f, "ServiceAccount {account} was deleted"),
            Self::NoAccount { account } => write!(f, "ServiceAccount {account} does not exist"),
        }
    }
}
