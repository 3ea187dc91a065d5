//! Whether this process has watched without a gap since its last look. A node that was not heard of while nobody
//! listened may be well: after a gap each node gets its whole grace period again.
//!
//! This is a deviation (kubernetes/kubernetes#24200 and #32510). Without a gap there is no difference.
//! Left out: gaps that are too short to bring a healthy node to the end of its grace period.
//!
//! Upstream has only `handleDisruption`, which waits anew once a node is ready after none was.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::time::Time;

use crate::plan::Config;

/// A look at all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// When it was.
    pub at: Timestamp,
    /// Whether nodes and Leases were followed.
    pub is_followed: bool,
}

/// Why nodes are not to be judged by the time that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gap {
    /// Nodes or Leases cannot be followed.
    NotFollowed,
    /// They could not at the last look.
    WasNotFollowed {
        /// When that was.
        looked: Time,
    },
    /// The last look is too long ago: the process slept, or its clock was set.
    Paused {
        /// When the last look was.
        looked: Time,
    },
}

/// Finds a gap between two looks.
pub fn gap(last: Option<Look>, look: Look, config: &Config) -> Option<Gap> {
    if !look.is_followed {
        return Some(Gap::NotFollowed);
    }
    let last = last?;
    let looked = Time::of(last.at);
    if !last.is_followed {
        return Some(Gap::WasNotFollowed { looked });
    }
    // A clock that was set back leaves a negative time.
    let passed = Duration::try_from(look.at.duration_since(last.at)).ok();
    passed.is_none_or(|passed| passed > longest(config)).then_some(Gap::Paused { looked })
}

/// Looks come late where the processor is busy. A kubelet renews its Lease several times in a grace period, so half of
/// one more brings no healthy node to its end.
fn longest(config: &Config) -> Duration {
    config.period.saturating_mul(2).max(config.grace / 2)
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed => f.write_str("nodes or their leases cannot be followed"),
            Self::WasNotFollowed { looked } => write!(f, "nodes or their leases could not be followed at {looked}"),
            Self::Paused { looked } => write!(f, "nobody has looked since {looked}"),
        }
    }
}
