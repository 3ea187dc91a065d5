//! Why so many pods may be evicted, and the questions that the caches leave open: values that programs read as JSON,
//! and people as text.
//!
//! Left out: which pods are healthy. A budget may have thousands.

use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::runtime::decisions;

use super::{Counts, Failure};

/// So many bytes of an error a reason has room for.
const ERROR: usize = 400;
/// So many owners or pods are named.
const NAMED: usize = 5;

/// Why so many pods may be evicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The pods were counted.
    Counted {
        /// How many may be evicted.
        disruptions_allowed: i32,
        /// How many are healthy.
        current_healthy: i32,
        /// How many must be.
        desired_healthy: i32,
        /// How many there should be.
        expected_pods: i32,
        /// How many are being evicted.
        disrupted: usize,
        /// How many have no owner and count for nothing.
        unmanaged: usize,
    },
    /// They could not be counted.
    NotCounted {
        /// The error.
        error: String,
    },
}

impl Reason {
    pub(super) fn of(counts: &Result<Counts, Failure>) -> Self {
        match counts {
            Ok(counts) => Self::Counted {
                disruptions_allowed: counts.disruptions_allowed(),
                current_healthy: counts.current_healthy,
                desired_healthy: counts.desired_healthy,
                expected_pods: counts.expected_pods,
                disrupted: counts.disrupted_pods.len(),
                unmanaged: counts.unmanaged,
            },
            Err(Failure { message, is_lasting: _ }) => {
                Self::NotCounted { error: message[..message.floor_char_boundary(ERROR)].to_owned() }
            }
        }
    }
}

/// The question that the caches leave open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unknown {
    /// How many pods the owners ask for.
    Scale {
        /// The first of them, such as `ReplicaSet web`.
        owners: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// Whether pods that were evicted are gone, or not seen yet.
    Evicted {
        /// The names of the first of them.
        pods: Vec<String>,
        /// How many more there are.
        more: usize,
    },
}

impl Unknown {
    pub(super) fn scale(owners: impl Iterator<Item = String>) -> Self {
        let mut owners: Vec<String> = owners.collect();
        owners.sort_unstable();
        let more = owners.len().saturating_sub(NAMED);
        owners.truncate(NAMED);
        Self::Scale { owners, more }
    }

    pub(super) fn evicted(pods: &[&str]) -> Self {
        let named = pods.iter().take(NAMED).map(|name| (*name).to_owned());
        Self::Evicted { pods: named.collect(), more: pods.len().saturating_sub(NAMED) }
    }
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Unknown {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counted {
                disruptions_allowed: _,
                current_healthy,
                desired_healthy,
                expected_pods,
                disrupted,
                unmanaged,
            } => {
                write!(f, "{current_healthy} of {expected_pods} pods are healthy, and {desired_healthy} must be")?;
                for (count, what) in [(disrupted, "being evicted"), (unmanaged, "without an owner")] {
                    if *count > 0 {
                        write!(f, "; {count} {what}")?;
                    }
                }
                Ok(())
            }
            Self::NotCounted { error } => write!(f, "the pods cannot be counted: {error}"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, names, more) = match self {
            Self::Scale { owners, more } => ("a share is asked for, and the owners are", owners, more),
            Self::Evicted { pods, more } => ("evicted, and gone or not seen yet:", pods, more),
        };
        write!(f, "{what} {}", list(names, String::clone))?;
        if *more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}
