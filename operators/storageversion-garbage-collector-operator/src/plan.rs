//! Which entries of a StorageVersion go because their apiservers are dead.
//!
//! Upstream: `syncStorageVersion` and `updateOrDeleteStorageVersion`, `pkg/controller/storageversiongc/gc_controller.go`.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::observe::{Live, Observed, apiserver_of, entries};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Write nothing until something changes.
    Keep(Reason),
    /// Write the status with these entries only.
    Shrink {
        entries: Vec<Value>,
        /// The apiservers whose entries go.
        dead: Vec<Text>,
    },
    /// Delete it: no apiserver is left.
    Delete {
        preconditions: Preconditions<String, String>,
        /// The apiservers whose entries go.
        dead: Vec<Text>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The Leases of all its apiservers are in the cache.
    Alive { apiservers: usize },
    /// The Leases of these apiservers are not in the cache.
    NotSeen { apiservers: Vec<Text> },
    /// Each of its apiservers has a Lease, although the cache lacks one.
    AliveBesideCache,
    /// It was deleted, which the cache does not show yet.
    Gone,
    /// These of its apiservers have no Lease, and others have.
    Dead { apiservers: Vec<Text> },
    /// None of its apiservers has a Lease.
    AllDead { apiservers: Vec<Text> },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Shrink { entries: _, dead } => Reason::Dead { apiservers: dead.clone() },
            Self::Delete { preconditions: _, dead } => Reason::AllDead { apiservers: dead.clone() },
        }
    }
}

/// Plans the next stage. The cache can show that an apiserver lives; only a live read shows that it is dead.
pub fn plan(observed: &Observed) -> Next {
    let Observed { storage_version, unseen, live } = observed;
    let (object, dead) = match live {
        None if unseen.is_empty() => {
            return Next::Execute(Plan::Keep(Reason::Alive { apiservers: storage_version.apiservers.len() }));
        }
        None => {
            let reason = Reason::NotSeen { apiservers: unseen.clone() };
            return Next::Ask(LiveRead { step: "reread it and the Leases of its apiservers", reason });
        }
        Some(Live::Gone) => return Next::Execute(Plan::Keep(Reason::Gone)),
        Some(Live::Found { object, dead }) => (object, dead),
    };
    if dead.is_empty() {
        return Next::Execute(Plan::Keep(Reason::AliveBesideCache));
    }
    let alive = entries(object).filter(|entry| !dead.contains(apiserver_of(entry)));
    let entries: Vec<Value> = alive.cloned().collect();
    let dead = dead.iter().cloned().collect();
    Next::Execute(if entries.is_empty() {
        let Preconditions { uid, resource_version } = Preconditions::of_read(object);
        let (uid, resource_version) = (uid.to_owned(), resource_version.map(str::to_owned));
        Plan::Delete { preconditions: Preconditions { uid, resource_version }, dead }
    } else {
        Plan::Shrink { entries, dead }
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Shrink { entries, dead } => {
                write!(f, "drop {} of {} entries ({reason})", dead.len(), dead.len() + entries.len())
            }
            Self::Delete { .. } => write!(f, "delete ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |apiservers: &[Text]| list(apiservers, ToString::to_string);
        match self {
            Self::Alive { apiservers: 0 } => f.write_str("no apiserver has reported a version"),
            Self::Alive { apiservers } => write!(f, "apiservers with a Lease: {apiservers}"),
            Self::NotSeen { apiservers } => write!(f, "no Lease in the cache: {}", names(apiservers)),
            Self::AliveBesideCache => f.write_str("each apiserver has a Lease"),
            Self::Gone => f.write_str("deleted already"),
            Self::Dead { apiservers } => write!(f, "apiservers without a Lease: {}", names(apiservers)),
            Self::AllDead { apiservers } => write!(f, "no apiserver has a Lease: {}", names(apiservers)),
        }
    }
}
