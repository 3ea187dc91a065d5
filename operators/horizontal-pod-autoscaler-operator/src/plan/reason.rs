//! Why an autoscaler scales or does not, and the questions that are asked live: values that programs read as JSON, and
//! people as text.
//!
//! Left out: the values of the metrics. The status has them.

use std::fmt;

use serde::Serialize;
use shared::runtime::decisions;

/// So many bytes of an error or of a metric's name a reason has room for.
const TEXT: usize = 300;

/// Why the target has the number of replicas that it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The scale cannot be read.
    NoScale {
        /// The error.
        error: String,
    },
    /// The target is at zero, and it was not the autoscaler that put it there.
    Disabled,
    /// It asks for a number outside of the bounds.
    OutOfBounds {
        /// The number.
        current: i32,
        /// The bound.
        bound: i32,
    },
    /// No number can be computed.
    NotComputed {
        /// The error.
        error: String,
    },
    /// The metrics decide.
    Computed {
        /// The number that they ask for.
        recommended: i32,
        /// The metric that asks for the most.
        metric: String,
        /// The reason of the condition `AbleToScale`: whether earlier recommendations count more.
        able: &'static str,
        /// The reason of the condition `ScalingLimited`: the bound that cuts the number, if one does.
        limited: &'static str,
        /// The error of a metric that cannot be had, where others suffice.
        error: Option<String>,
    },
}

impl Reason {
    pub(super) fn no_scale(error: &str) -> Self {
        Self::NoScale { error: short(error) }
    }

    pub(super) fn not_computed(error: &str) -> Self {
        Self::NotComputed { error: short(error) }
    }

    pub(super) fn computed(
        (recommended, metric): (i32, &str),
        able: &'static str,
        limited: &'static str,
        error: Option<&str>,
    ) -> Self {
        Self::Computed { recommended, metric: short(metric), able, limited, error: error.map(short) }
    }
}

fn short(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT)].to_owned()
}

/// What is asked live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Question {
    /// How many replicas the target asks for.
    Scale {
        /// The target, such as `Deployment web`.
        target: String,
    },
    /// How much load there is.
    Metrics {
        /// How many replicas the target asks for.
        current: i32,
        /// How many metrics decide.
        metrics: usize,
    },
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Question {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScale { error } => write!(f, "the scale cannot be read: {error}"),
            Self::Disabled => f.write_str("somebody else has put it at zero"),
            Self::OutOfBounds { current, bound } => write!(f, "{current} is beyond {bound}"),
            Self::NotComputed { error } => write!(f, "no number can be computed: {error}"),
            Self::Computed { recommended, metric, able, limited, error } => {
                write!(f, "{recommended} by {metric}; {able}, {limited}")?;
                error.as_ref().map_or(Ok(()), |error| write!(f, "; {error}"))
            }
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scale { target } => write!(f, "nobody follows the scale of {target}"),
            Self::Metrics { current, metrics } => {
                let s = if *metrics == 1 { "" } else { "s" };
                write!(f, "{current} is within bounds, and {metrics} metric{s} may ask for another number")
            }
        }
    }
}
