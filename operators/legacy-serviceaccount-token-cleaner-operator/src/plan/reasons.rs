//! Why a round looks at tokens or not, and why a token stays or goes.
//!
//! Left out: deciding it.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::time::Time;
use shared::runtime::decisions;

use crate::objects::day::Day;

/// Why a round looks at tokens, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RoundReason {
    /// The apiserver does not say that it notes uses.
    NotTracked,
    /// The apiserver's ConfigMap says no day.
    NoDay,
    /// Uses are noted for less than the period.
    TooShort {
        /// When they will have been for long enough.
        until: Time,
    },
    /// Uses are noted for long enough.
    LongEnough {
        /// Since when.
        since: Day,
    },
}

/// Why a token stays, is marked, or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// It is not old enough.
    New {
        /// When it was created.
        created: Time,
    },
    /// It is being deleted already.
    BeingDeleted,
    /// The label of its last use says no day.
    NoDay,
    /// It was used within the period.
    Used {
        /// On this day.
        on: Day,
    },
    /// It is invalid, and has not been for the period.
    Invalid {
        /// Since when.
        since: Day,
    },
    /// The account that it names is not there.
    NoAccount,
    /// Its account does not list it.
    NotListed,
    /// A pod uses it.
    UsedByPod {
        /// The pod's name.
        pod: Text,
    },
    /// Nobody has used it for the period.
    Unused {
        /// When it was last used; none if never since uses are noted.
        last_used: Option<Day>,
    },
    /// It has been invalid for the period, and nobody has minded.
    Overdue {
        /// Since when.
        since: Day,
    },
}

impl decisions::Reason for RoundReason {}

impl decisions::Reason for Reason {}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTracked => f.write_str("the apiserver does not say since when it notes uses"),
            Self::NoDay => f.write_str("the apiserver's ConfigMap says no day"),
            Self::TooShort { until } => write!(f, "uses are noted for long enough at {until}"),
            Self::LongEnough { since } => write!(f, "uses are noted since {since}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { created } => write!(f, "created at {created}"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoDay => f.write_str("the label of its last use says no day"),
            Self::Used { on } => write!(f, "used on {on}"),
            Self::Invalid { since } => write!(f, "invalid since {since} only"),
            Self::NoAccount => f.write_str("its ServiceAccount is not there"),
            Self::NotListed => f.write_str("its ServiceAccount does not list it, so a person has made it"),
            Self::UsedByPod { pod } => write!(f, "pod {pod} uses it"),
            Self::Unused { last_used: None } => f.write_str("never used since uses are noted"),
            Self::Unused { last_used: Some(day) } => write!(f, "last used on {day}"),
            Self::Overdue { since } => write!(f, "invalid since {since}"),
        }
    }
}
