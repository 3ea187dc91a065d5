//! The one place that reads the wall clock or draws a random delay; everything that decides takes both as arguments.
//!
//! Left out: sleeping. Delays belong to [`crate::working::queue`], and tests drive tokio's paused time.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A source of the current time: the system's, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    pub fn system() -> Self {
        Self(Arc::new(Timestamp::now))
    }

    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

/// The current time of the clock that nobody can set. It follows tokio's paused time in tests.
pub fn instant() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// `base` plus a random part of at most `base * factor`: keeps many processes from acting at the same instant.
///
/// Upstream: `Jitter`, staging/src/k8s.io/apimachinery/pkg/util/wait/backoff.go.
pub fn jitter(base: Duration, factor: f64) -> Duration {
    // A RandomState is seeded by the system once a thread and differs at each call; no number generator is needed.
    let [high, low, ..] = RandomState::new().hash_one(0).to_be_bytes();
    let part = f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX);
    base + base.mul_f64(part * factor)
}

/// A random part of this time, so that tasks woken together do not all act together.
pub fn part_of(window: Duration) -> Duration {
    jitter(window, 1.0).saturating_sub(window)
}

/// What is left of a time that began then; none if it is over, or if the clock was set back since.
pub fn left_of(time: Duration, since: Timestamp, now: Timestamp) -> Option<Duration> {
    let passed = Duration::try_from(now.duration_since(since)).ok()?;
    time.checked_sub(passed).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_in_its_bounds_and_varies() {
        let drawn: Vec<Duration> = (0..100).map(|_| jitter(Duration::from_secs(10), 0.5)).collect();
        assert!(drawn.iter().all(|d| (10.0..=15.0).contains(&d.as_secs_f64())), "{drawn:?}");
        assert!(drawn.iter().any(|d| *d != drawn[0]));
    }
}
