//! Whether a deleted Secret is removed from its ServiceAccount's list.
//!
//! Upstream: `removeSecretReference`, `pkg/controller/serviceaccount/tokens_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::observe::ObservedReference;

/// The decision about the list of an account, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlisting {
    Nothing(Reason),
    /// Remove the Secret from the list of the account with this uid.
    Remove(Uid),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The Secret was deleted; its account may list it.
    Gone {
        account: Text,
    },
    /// The cache does not have the account.
    NotSeen,
    /// The account was deleted too, or another one has its name.
    NoAccount,
    /// The account does not list it.
    NotListed,
    Listed,
}

impl decisions::Reason for Reason {}

impl Reasoned for Unlisting {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => reason.clone(),
            Self::Remove(_) => Reason::Listed,
        }
    }
}

/// Plans to read the list of the account, which no cache has, if the account exists.
pub fn plan_read(observed: &ObservedReference) -> Option<LiveRead<Reason>> {
    let ObservedReference { secret: _, account, is_seen, listing: _ } = observed;
    let reason = Reason::Gone { account: account.name.clone() };
    is_seen.then_some(LiveRead { step: "read its ServiceAccount's list", reason })
}

pub fn plan_unlisting(observed: &ObservedReference) -> Unlisting {
    let ObservedReference { secret, account, is_seen, listing } = observed;
    if !is_seen {
        return Unlisting::Nothing(Reason::NotSeen);
    }
    let Some(listing) = listing.as_ref().filter(|listing| account.means(listing.metadata.uid)) else {
        return Unlisting::Nothing(Reason::NoAccount);
    };
    if listing.secrets.iter().any(|listed| *listed == *secret.name()) {
        Unlisting::Remove(listing.metadata.uid)
    } else {
        Unlisting::Nothing(Reason::NotListed)
    }
}

impl fmt::Display for Unlisting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Nothing(_) => write!(f, "nothing ({reason})"),
            Self::Remove(_) => write!(f, "remove it from the list ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { account } => write!(f, "the token of ServiceAccount {account} was deleted"),
            Self::NotSeen => f.write_str("its ServiceAccount is not in the cache"),
            Self::NoAccount => f.write_str("its ServiceAccount is gone too"),
            Self::NotListed => f.write_str("its ServiceAccount does not list it"),
            Self::Listed => f.write_str("its ServiceAccount lists it"),
        }
    }
}
