//! The reasons of the stages: values that programs read as JSON and people as text.

use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::working::decisions;

use super::Plan;
use crate::objects::Failure;

/// The most bytes of an error in a reason.
const ERROR_MAX: usize = 400;
/// The most owners or pods named in a reason.
const NAMES_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// Whether the pods of these evictions are gone or not seen yet is unknown.
    Evicted {
        /// The names of the first ones.
        pods: Vec<String>,
        more: usize,
    },
    Scale {
        /// The first owners, such as `ReplicaSet web`.
        owners: Vec<String>,
        more: usize,
    },
    Counted {
        /// The number of pods that may be evicted.
        disruptions_allowed: i32,
        current_healthy: i32,
        desired_healthy: i32,
        expected_pods: i32,
        disrupted: usize,
        /// The number of pods without a controller, where the controllers' scales count.
        unmanaged: usize,
        /// Why the number required is that of the last status.
        #[serde(skip_serializing_if = "Option::is_none")]
        unread: Option<String>,
    },
    /// The pods could not be counted.
    NotCounted { error: String },
}

impl Reason {
    pub(super) fn evicted(pods: &[&str]) -> Self {
        let named = pods.iter().take(NAMES_MAX).map(|name| (*name).to_owned());
        Self::Evicted { pods: named.collect(), more: pods.len().saturating_sub(NAMES_MAX) }
    }

    pub(super) fn scale(owners: impl Iterator<Item = String>) -> Self {
        let mut owners: Vec<String> = owners.collect();
        owners.sort_unstable();
        let more = owners.len().saturating_sub(NAMES_MAX);
        owners.truncate(NAMES_MAX);
        Self::Scale { owners, more }
    }

    pub(super) fn of(plan: &Plan) -> Self {
        match &plan.counts {
            Ok(counts) => Self::Counted {
                disruptions_allowed: counts.disruptions_allowed(),
                current_healthy: counts.current_healthy,
                desired_healthy: counts.desired_healthy,
                expected_pods: counts.expected_pods,
                disrupted: counts.disrupted_pods.len(),
                unmanaged: counts.unmanaged,
                unread: plan.unread.as_ref().map(cut),
            },
            Err(failure) => Self::NotCounted { error: cut(failure) },
        }
    }
}

fn cut(failure: &Failure) -> String {
    failure.message[..failure.message.floor_char_boundary(ERROR_MAX)].to_owned()
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evicted { pods, more } => write_names(f, "evicted, and gone or not seen yet:", pods, *more),
            Self::Scale { owners, more } => write_names(f, "the budget depends on the scale of", owners, *more),
            Self::Counted {
                disruptions_allowed: _,
                current_healthy,
                desired_healthy,
                expected_pods,
                disrupted,
                unmanaged,
                unread,
            } => {
                write!(f, "{current_healthy} of {expected_pods} pods are healthy, {desired_healthy} required")?;
                for (count, what) in [(disrupted, "being evicted"), (unmanaged, "without a controller")] {
                    if *count > 0 {
                        write!(f, "; {count} {what}")?;
                    }
                }
                unread.iter().try_for_each(|error| write!(f, "; cannot read owners: {error}"))
            }
            Self::NotCounted { error } => write!(f, "cannot count pods: {error}"),
        }
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, what: &str, names: &[String], more: usize) -> fmt::Result {
    write!(f, "{what} {}", list(names, String::clone))?;
    if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
}
