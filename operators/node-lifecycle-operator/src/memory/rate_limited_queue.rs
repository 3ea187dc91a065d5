//! The rate at which nodes of a zone are tainted: a token bucket with a burst of one.
//!
//! The queue itself is in the memory of each node: since when it waits.
//!
//! Upstream: `pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limiter {
    rate: f64,
    full_at: Timestamp,
}

impl Limiter {
    /// A full bucket with a rate of tokens a second; it is never filled if the rate is not positive.
    pub fn new(rate: f64, now: Timestamp) -> Self {
        Self { rate, full_at: now }
    }

    /// Its tokens a second.
    pub fn rate(self) -> f64 {
        self.rate
    }

    pub fn try_accept(&mut self, now: Timestamp) -> bool {
        self.full_at = self.full_after(now);
        if !self.is_ever_filled() || now < self.full_at {
            return false;
        }
        self.full_at = after(now, self.rate);
        true
    }

    /// How long until it has a token; none if it never gets one.
    pub fn wait(self, now: Timestamp) -> Option<Duration> {
        let full_at = self.full_after(now);
        self.is_ever_filled().then(|| Duration::try_from(full_at.duration_since(now)).unwrap_or_default())
    }

    /// At most the time of one token from now, in case the clock was set back.
    fn full_after(self, now: Timestamp) -> Timestamp {
        self.full_at.min(after(now, self.rate))
    }

    /// Changes the rate; an empty bucket stays empty.
    ///
    /// Upstream: `SwapLimiter`.
    #[must_use]
    pub fn swap(mut self, rate: f64, now: Timestamp) -> Self {
        if self.rate.total_cmp(&rate).is_eq() {
            return self;
        }
        let had_token = self.try_accept(now);
        let mut new = Self::new(rate, now);
        if !had_token {
            new.try_accept(now);
        }
        new
    }

    fn is_ever_filled(self) -> bool {
        self.rate > 0.0
    }
}

/// The time at which a bucket that is empty now has a token.
fn after(now: Timestamp, rate: f64) -> Timestamp {
    let filling = Duration::try_from_secs_f64(rate.recip()).ok().and_then(|time| SignedDuration::try_from(time).ok());
    filling.and_then(|time| now.checked_add(time).ok()).unwrap_or(Timestamp::MAX)
}
