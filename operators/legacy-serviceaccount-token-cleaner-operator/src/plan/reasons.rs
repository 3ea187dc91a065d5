//! The reasons of rounds and of decisions about tokens.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::time::Time;
use shared::working::decisions;

use crate::objects::day::Day;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RoundReason {
    NotTracked,
    NoDay,
    /// Uses have been tracked for less than the period.
    TooShort {
        until: Time,
    },
    LongEnough {
        /// The first day of tracking.
        since: Day,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// It is younger than the period.
    New {
        created: Time,
    },
    BeingDeleted,
    /// The label of its last use is not a day.
    NoDay,
    Used {
        /// The day of its last use.
        on: Day,
    },
    /// It has been invalid for less than the period.
    Invalid {
        since: Day,
    },
    NoAccount,
    NotListed,
    UsedByPod {
        pod: Text,
    },
    /// It was not used within the period.
    Unused {
        /// When it was last used; none if never while tracked.
        last_used: Option<Day>,
    },
    Overdue {
        since: Day,
    },
}

impl decisions::Reason for RoundReason {}

impl decisions::Reason for Reason {}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTracked => f.write_str("the ConfigMap of the apiserver's token tracking is missing"),
            Self::NoDay => f.write_str("the ConfigMap of the apiserver's token tracking has no date"),
            Self::TooShort { until } => write!(f, "uses are not tracked for long enough until {until}"),
            Self::LongEnough { since } => write!(f, "uses are tracked since {since}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { created } => write!(f, "created at {created}"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoDay => f.write_str("the last-used label is not a date"),
            Self::Used { on } => write!(f, "used on {on}"),
            Self::Invalid { since } => write!(f, "invalid only since {since}"),
            Self::NoAccount => f.write_str("its ServiceAccount does not exist"),
            Self::NotListed => f.write_str("its ServiceAccount does not list it, so a person created it"),
            Self::UsedByPod { pod } => write!(f, "pod {pod} uses it"),
            Self::Unused { last_used: None } => f.write_str("never used while tracked"),
            Self::Unused { last_used: Some(day) } => write!(f, "last used on {day}"),
            Self::Overdue { since } => write!(f, "invalid since {since}"),
        }
    }
}
