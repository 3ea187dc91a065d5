//! The back-off of a Job after failures: 10 s, doubled with each, at most 10 min.
//!
//! Upstream: `pkg/controller/job/backoff_utils.go`.

use std::time::Duration;

use jiff::Timestamp;
use shared::api::time::Time;

/// Upstream: `DefaultJobPodFailureBackOff`.
const FIRST_SECONDS: i64 = 10;
/// Upstream: `MaxJobPodFailureBackOff`.
const MAX_SECONDS: i64 = 600;

/// The failures of a Job since its last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackoffRecord {
    pub failures: i64,
    pub last_failure: Option<Time>,
}

impl BackoffRecord {
    /// Adds pods that ended since; times in any order.
    ///
    /// Upstream: `newBackoffRecord`.
    #[must_use]
    pub fn with(self, succeeded: &[Option<Time>], failed: &[Option<Time>]) -> Self {
        let latest = |finishes: &[Option<Time>]| finishes.iter().copied().max();
        match (latest(succeeded), latest(failed)) {
            (None, None) => self,
            (Some(_), None) => Self::default(),
            (None, Some(last)) => {
                Self { failures: self.failures.saturating_add(count(failed.len())), last_failure: last }
            }
            (Some(success), Some(last)) => {
                let failures = count(failed.iter().filter(|finish| **finish > success).count());
                Self { failures, last_failure: last.filter(|_| failures > 0) }
            }
        }
    }

    /// How long to wait from `now` before creating pods; none if they may be created.
    ///
    /// Upstream: `getRemainingTime`.
    pub fn remaining(self, now: Timestamp) -> Option<Duration> {
        let last_failure = self.last_failure.filter(|_| self.failures > 0)?;
        let exponent = u32::try_from(self.failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let doubled = 2_i64.checked_pow(exponent).unwrap_or(i64::MAX);
        last_failure.remaining(FIRST_SECONDS.saturating_mul(doubled).min(MAX_SECONDS), now)
    }
}

pub fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
