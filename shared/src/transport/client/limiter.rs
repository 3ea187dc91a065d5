//! `--kube-api-qps` and `--kube-api-burst`: a token bucket in front of every request.
//!
//! Left out: fairness beyond the order of arrival, and a limit by default: the apiserver's priority and fairness
//! already protects it, and a client-side limit only hides work in a queue nobody can see.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The longest pause: a sum of them, however many wait, is still a time.
const SECONDS_PER_DAY: f32 = 86_400.0;

/// Lets `burst` requests through at once and `qps` a second on average, in the order they ask.
///
/// Upstream: `NewTokenBucketRateLimiter`, staging/src/k8s.io/client-go/util/flowcontrol/throttle.go.
pub(crate) struct Limiter {
    interval: Duration,
    burst: u32,
    /// When the bucket was, or will be, empty of all tokens handed out.
    empty_at: Mutex<Option<Instant>>,
}

impl Limiter {
    /// `qps` must be above 0, and counts as one request a day if it is less; a `burst` of 0 counts as 1.
    pub(crate) fn new(qps: f32, burst: u32) -> Self {
        Self {
            interval: Duration::from_secs_f32(qps.recip().min(SECONDS_PER_DAY)),
            burst: burst.max(1),
            empty_at: Mutex::new(None),
        }
    }

    pub(crate) async fn acquire(&self) {
        let due = self.reserve(Instant::now());
        tokio::time::sleep_until(due).await;
    }

    /// Takes the next token and says when it is there.
    fn reserve(&self, now: Instant) -> Instant {
        let full_bucket = self.interval * self.burst;
        let mut empty_at = self.empty_at.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = now.checked_sub(full_bucket).unwrap_or(now);
        let taken = empty_at.map_or(oldest, |at| at.max(oldest)) + self.interval;
        *empty_at = Some(taken);
        taken.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lets_a_burst_through_and_then_the_rate() {
        let limiter = Limiter::new(10.0, 3);
        // The bucket starts at an instant that has a past.
        tokio::time::advance(Duration::from_secs(10)).await;
        let now = Instant::now();
        let waits: Vec<u128> = (0..5).map(|_| limiter.reserve(now).duration_since(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(60);
        assert_eq!(limiter.reserve(later), later, "the bucket fills again");
    }

    #[test]
    fn any_rate_and_burst_give_a_time() {
        for qps in [f32::MIN_POSITIVE, 1e-20, f32::MAX, f32::INFINITY] {
            let limiter = Limiter::new(qps, u32::MAX);
            let now = Instant::now();
            assert!(limiter.reserve(now) <= limiter.reserve(now));
        }
    }
}
