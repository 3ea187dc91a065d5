//! Why an autoscaler scales or does not, and the purposes of its live reads.

use std::fmt;

use serde::Serialize;
use shared::working::decisions;

/// The most bytes of an error or of a metric's name in a reason.
const TEXT: usize = 300;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    NoScale {
        error: String,
    },
    /// The target is at zero, and the autoscaler did not scale it there.
    Disabled,
    /// The target asks for a number out of bounds.
    OutOfBounds {
        current: i32,
        bound: i32,
    },
    NotComputed {
        error: String,
    },
    Computed {
        recommended: i32,
        metric: String,
        /// The reason of the condition `AbleToScale`: whether earlier recommendations hold this one back.
        able: &'static str,
        /// The reason of the condition `ScalingLimited`: the bound that limits the number, if one does.
        limited: &'static str,
        /// The error of a failed metric, if the others suffice.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Question {
    /// The replicas that this target, such as `Deployment web`, asks for.
    Scale {
        target: String,
    },
    Metrics {
        current: i32,
        metrics: usize,
    },
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Question {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScale { error } => write!(f, "cannot read the scale: {error}"),
            Self::Disabled => f.write_str("not scaled to zero by this autoscaler"),
            Self::OutOfBounds { current, bound } => write!(f, "{current} is out of bounds; the limit is {bound}"),
            Self::NotComputed { error } => write!(f, "cannot compute replicas: {error}"),
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
            Self::Scale { target } => write!(f, "the scale of {target} is not cached"),
            Self::Metrics { current, metrics } => {
                let s = if *metrics == 1 { "" } else { "s" };
                write!(f, "{current} is within bounds; {metrics} metric{s} to evaluate")
            }
        }
    }
}
