//! Whether this process has watched without a gap since its last look. During a gap a healthy node may have been heard
//! from unseen, so after it each node gets its whole grace period again.
//!
//! Upstream has only `handleDisruption`, which restarts the grace periods once a node is ready after none was
//! (kubernetes/kubernetes#24200, kubernetes/kubernetes#32510). Without a gap there is no difference.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use shared::api::time::Time;

use crate::memory::Look;
use crate::plan::config::Config;

/// Why no node is judged by the time that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gap {
    NotFollowed,
    /// It failed at the last look.
    WasNotFollowed {
        /// The time of the last look.
        looked: Time,
    },
    /// The last look is too long ago: the process was paused, or its clock was set.
    Paused {
        /// The time of the last look.
        looked: Time,
    },
}

impl Gap {
    /// As in the metric, and in the decision's JSON.
    pub const NAMES: [&str; 3] = ["notFollowed", "wasNotFollowed", "paused"];

    /// The one of [`Self::NAMES`].
    pub fn as_str(self) -> &'static str {
        let [not_followed, was_not_followed, paused] = Self::NAMES;
        match self {
            Self::NotFollowed => not_followed,
            Self::WasNotFollowed { .. } => was_not_followed,
            Self::Paused { .. } => paused,
        }
    }
}

pub fn gap(last: Option<Look>, look: Look, config: &Config) -> Option<Gap> {
    if !look.is_followed {
        return Some(Gap::NotFollowed);
    }
    let last = last?;
    let looked = Time::of(last.at);
    if !last.is_followed {
        return Some(Gap::WasNotFollowed { looked });
    }
    // If the clock was set back, the time is negative.
    let passed = Duration::try_from(look.at.duration_since(last.at)).ok();
    passed.is_none_or(|passed| passed > longest(config)).then_some(Gap::Paused { looked })
}

/// A busy processor delays looks. A kubelet renews its Lease several times in a grace period, so a pause of half a grace
/// period does not let a healthy node's one end.
fn longest(config: &Config) -> Duration {
    config.period.saturating_mul(2).max(config.grace / 2)
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed => f.write_str("cannot watch nodes or their leases"),
            Self::WasNotFollowed { looked } => write!(f, "could not watch nodes or their leases at {looked}"),
            Self::Paused { looked } => write!(f, "no look at the nodes since {looked}"),
        }
    }
}
