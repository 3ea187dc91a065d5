//! The fate of a token's Secret: a value made from the Secret, its ServiceAccount and the CA, and nothing else.
//!
//! Left out: the token itself. A plan says that one is to be signed, and for whom; no log and no explanation has it.
//!
//! Upstream: `syncSecret` and `generateTokenIfNeeded`, `pkg/controller/serviceaccount/tokens_controller.go`.

pub mod jwt;
pub mod reference;

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::runtime::control::Preconditions;
use shared::runtime::decisions::{self, LiveRead, Reasoned};

use crate::objects::{CA_CERT, NAMESPACE, TOKEN, Token};
use crate::observe::{Account, Observed};

/// The decision about a Secret, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing is written.
    Keep(Reason),
    /// It gets the values that it lacks.
    Fill {
        /// Which they are.
        lacks: Lacks,
        /// The uid of the account that its token is for.
        account: Uid,
        /// This Secret, in this state: what somebody else has filled in now is not written over.
        preconditions: Preconditions,
    },
    /// It is deleted.
    Delete {
        /// Why.
        reason: Reason,
        /// This Secret, in this state: one that names another account now stays.
        preconditions: Preconditions,
    },
}

/// The values that a Secret has not, or not as they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lacks {
    /// The token; one that is there is never checked.
    pub token: bool,
    /// The namespace; one that is there stays, whatever it is.
    pub namespace: bool,
    /// The CA: there is none, or another one.
    pub ca: bool,
}

impl Lacks {
    /// The values that a Secret lacks, if this is the CA; no Secret lacks one that nobody knows.
    ///
    /// Upstream: `secretUpdateNeeded`.
    fn of(token: &Token, ca: Option<&Text>) -> Self {
        let is_other = ca.is_some_and(|ca| token.ca.as_ref() != Some(ca));
        Self { token: !token.has_token, namespace: !token.has_namespace, ca: is_other }
    }
}

/// Why a Secret stays as it is, is filled in, or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// There is no key to sign with.
    Off,
    /// It is being deleted already.
    BeingDeleted,
    /// It names no account.
    NoName,
    /// It has all that it needs.
    Complete,
    /// It lacks something.
    Incomplete {
        /// Which values.
        lacks: Lacks,
    },
    /// It lacks something, and nobody can write it any more.
    Immutable {
        /// Which values.
        lacks: Lacks,
    },
    /// The cache does not have the account that it names.
    NotSeen {
        /// The account's name.
        account: Text,
    },
    /// The account that it names was deleted.
    Ended {
        /// The account's name.
        account: Text,
    },
    /// The account that it names is not there.
    NoAccount {
        /// The account's name.
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

/// Plans to read the account where the cache does not have it: a token is never deleted by what a cache lacks.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Reason>> {
    let Observed { token, account, ca: _ } = observed;
    let is_open = kept(token).is_none() && *account == Account::NotSeen;
    let reason = Reason::NotSeen { account: token.metadata.annotations.name.clone() };
    is_open.then_some(LiveRead { step: "read its ServiceAccount", reason })
}

/// Decides about one Secret.
pub fn plan(observed: &Observed) -> Plan {
    let Observed { token, account, ca } = observed;
    if let Some(reason) = kept(token) {
        return Plan::Keep(reason);
    }
    let metadata = &token.metadata;
    let preconditions = Preconditions { uid: metadata.uid, resource_version: Some(metadata.resource_version) };
    let named = || metadata.annotations.name.clone();
    let account = match *account {
        Account::There(uid) => uid,
        Account::NotSeen => return Plan::Keep(Reason::NotSeen { account: named() }),
        Account::Ended => return Plan::Delete { reason: Reason::Ended { account: named() }, preconditions },
        Account::NotThere => return Plan::Delete { reason: Reason::NoAccount { account: named() }, preconditions },
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

/// Why a Secret stays, whatever its account is.
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
        let lacks = [(token, "no", TOKEN), (namespace, "no", NAMESPACE), (ca, "not this", CA_CERT)];
        let lacks = lacks.into_iter().filter(|(is_so, _, _)| *is_so).map(|(_, how, what)| format!("{how} {what}"));
        f.write_str(&lacks.collect::<Vec<String>>().join(", "))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("--service-account-private-key-file is not given"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoName => f.write_str("it names no ServiceAccount"),
            Self::Complete => f.write_str("it has all that it needs"),
            Self::Incomplete { lacks } => write!(f, "{lacks}"),
            Self::Immutable { lacks } => write!(f, "{lacks}, but it is immutable"),
            Self::NotSeen { account } => write!(f, "ServiceAccount {account} was not seen"),
            Self::Ended { account } => write!(f, "ServiceAccount {account} was deleted"),
            Self::NoAccount { account } => write!(f, "ServiceAccount {account} is not there"),
        }
    }
}
