//! The reasons of decisions, for programs and in words; of many owners or dependents, a reason names only the first.

use std::fmt;

use serde::Serialize;
use shared::working::decisions;

use crate::objects::{Identity, OwnerReference};

/// How many are named.
const NAMED: usize = 3;
/// How many bytes their names may have together.
const NAMES: usize = 110;
/// After how many bytes a text of any length is cut.
const TEXT: usize = 400;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    /// Kinds and names of the first.
    pub names: Vec<String>,
    /// How many others there are.
    pub more: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// It is being deleted already.
    BeingDeleted,
    /// Its kind is not served.
    Unserved,
    Unread {
        error: String,
    },
    Throttled,
    /// Its namespace is not known.
    NoNamespace,
    /// It does not exist.
    Absent,
    WaitsForDependents {
        dependents: Named,
    },
    DependentsGone,
    NoOwners,
    /// An owner's kind is not served.
    OwnerUnserved {
        api_version: String,
        kind: String,
    },
    /// It has many owners, and not all were read yet.
    OwnersThrottled {
        /// How many are known.
        read: usize,
        /// How many there are.
        of: usize,
    },
    InvalidName,
    /// An owner is namespaced, and the object is cluster-scoped.
    OwnerNamespaced {
        owner: String,
    },
    OwnerInvalidName {
        kind: String,
        name: String,
    },
    Owned {
        owners: Named,
    },
    /// Some of its owners stay, others do not.
    OwnersGone {
        #[serde(skip_serializing_if = "Named::is_empty")]
        stay: Named,
        /// These do not exist.
        #[serde(skip_serializing_if = "Named::is_empty")]
        absent: Named,
        /// These exist in other namespaces, where they own nothing of its.
        #[serde(skip_serializing_if = "Named::is_empty")]
        elsewhere: Named,
        /// These are being deleted and wait for their dependents.
        #[serde(skip_serializing_if = "Named::is_empty")]
        waiting: Named,
    },
    OwnersWait {
        /// These wait; others may be gone.
        owners: Named,
    },
    /// None of its owners exists.
    AllOwnersGone {
        /// These do not exist.
        #[serde(skip_serializing_if = "Named::is_empty")]
        absent: Named,
        /// These exist in other namespaces, where they own nothing of its.
        #[serde(skip_serializing_if = "Named::is_empty")]
        elsewhere: Named,
    },
    /// No monitor has seen it: a sync reads it.
    Unseen {
        /// Why its kind cannot be listed or watched, if it cannot.
        #[serde(skip_serializing_if = "Option::is_none")]
        failing: Option<String>,
    },
    /// No monitor has seen an owner: a sync reads it.
    OwnerUnseen {
        owner: String,
        /// Why its kind cannot be listed or watched, if it cannot.
        #[serde(skip_serializing_if = "Option::is_none")]
        failing: Option<String>,
    },
}

pub(super) fn owner_name(reference: &OwnerReference) -> String {
    let owner = &reference.owner;
    format!("{} {}", owner.kind.kind, &*owner.name)
}

pub(super) fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT)].to_owned()
}

impl Named {
    /// This many, of which these are the first.
    pub(super) fn of(count: usize, first: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut room = NAMES;
        for name in first.into_iter().take(NAMED) {
            let Some(left) = room.checked_sub(name.len()) else { break };
            room = left;
            names.push(name);
        }
        Self { more: count - names.len(), names }
    }

    /// The dependents of these identities; there are `count` of them.
    pub(super) fn identities(count: usize, first: &[Identity]) -> Self {
        Self::of(count, first.iter().map(ToString::to_string))
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.more == 0
    }
}

impl FromIterator<String> for Named {
    fn from_iter<I: IntoIterator<Item = String>>(all: I) -> Self {
        let all: Vec<String> = all.into_iter().collect();
        Self::of(all.len(), all)
    }
}

/// `ReplicaSet web, Job a and 7 more`.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, more } = self;
        f.write_str(&names.join(", "))?;
        match (names.len(), more) {
            (_, 0) => Ok(()),
            (0, more) => write!(f, "{more}"),
            (_, more) => write!(f, " and {more} more"),
        }
    }
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("is being deleted"),
            Self::Unserved => f.write_str("its kind is not served"),
            Self::Unread { error } => f.write_str(error),
            Self::Throttled => f.write_str("many reads are under way"),
            Self::OwnersThrottled { read, of } => write!(f, "{read} of its {of} owners were read"),
            Self::NoNamespace => f.write_str("its namespace is not known"),
            Self::InvalidName => f.write_str("no object can have its name"),
            Self::Absent => f.write_str("does not exist"),
            Self::WaitsForDependents { dependents } => {
                write!(f, "waits for dependents that block its deletion: {dependents}")
            }
            Self::DependentsGone => f.write_str("no dependent blocks its deletion"),
            Self::NoOwners => f.write_str("has no owners"),
            Self::OwnerUnserved { api_version, kind } => write!(f, "{api_version} {kind} of an owner is not served"),
            Self::OwnerNamespaced { owner } => {
                write!(f, "cluster-scoped objects cannot refer to namespaced owners: {owner}")
            }
            Self::OwnerInvalidName { kind, name } => write!(f, "no owner can have this name: {kind} {name:?}"),
            Self::Owned { owners } => write!(f, "is owned by {owners}"),
            Self::OwnersGone { stay, absent, elsewhere, waiting } => {
                let gone = gone(&[
                    ("is absent", absent),
                    ("is in another namespace", elsewhere),
                    ("is being deleted", waiting),
                ]);
                f.write_str(&gone)?;
                write!(f, "; {stay} stays")
            }
            Self::OwnersWait { owners } => write!(f, "its owners wait for it: {owners}"),
            Self::AllOwnersGone { absent, elsewhere } => {
                let owners = gone(&[("is absent", absent), ("is in another namespace", elsewhere)]);
                write!(f, "all its owners are gone: {owners}")
            }
            Self::Unseen { failing } => {
                f.write_str("no monitor has seen it; a sync reads it")?;
                failing.iter().try_for_each(|error| write!(f, "; its kind cannot be followed: {error}"))
            }
            Self::OwnerUnseen { owner, failing } => {
                write!(f, "no monitor has seen its owner {owner}; a sync reads it")?;
                failing.iter().try_for_each(|error| write!(f, "; that kind cannot be followed: {error}"))
            }
        }
    }
}

/// `ReplicaSet web is absent, Job a is in another namespace`.
fn gone(owners: &[(&str, &Named)]) -> String {
    let some = owners.iter().filter(|(_, owners)| !owners.is_empty());
    some.map(|(what, owners)| format!("{owners} {what}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_first_and_counts_the_rest() {
        let names = |count: u32, length: usize| -> Named {
            (0..count).map(|at| format!("Pod {}{at}", "n".repeat(length))).collect()
        };
        assert_eq!(
            [names(0, 1), names(2, 1), names(5, 1)].map(|named| named.to_string()),
            ["", "Pod n0, Pod n1", "Pod n0, Pod n1, Pod n2 and 2 more",]
        );
        let long = names(3, 200);
        assert_eq!(long.to_string(), "3");
        let four = || names(4, 30);
        let widest = Reason::OwnersGone { stay: four(), absent: four(), elsewhere: four(), waiting: four() };
        let json = serde_json::to_string(&widest).unwrap();
        assert!(json.len() <= 600, "{} {json}", json.len());
    }
}
