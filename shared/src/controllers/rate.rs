//! How often something happened of late, as one number that fades.

use std::time::Duration;

use jiff::Timestamp;

/// The time in which what happened counts for the rate.
const WINDOW: Duration = Duration::from_secs(10);

/// What happened in the last while, of which each weighs less the older it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    weight: f64,
    last: Option<Timestamp>,
}

impl Rate {
    /// As if it had happened so many times a second for long, until then.
    #[cfg(any(test, feature = "testing"))]
    pub fn of(a_second: f64, until: Timestamp) -> Self {
        Self { weight: a_second * WINDOW.as_secs_f64(), last: Some(until) }
    }

    /// Notes that it happens now.
    pub fn note(&mut self, now: Timestamp) {
        let passed = self.last.map(|last| now.duration_since(last).as_secs_f64());
        // A clock that was set back says nothing.
        let left = passed.map_or(0.0, |passed| (-passed.max(0.0) / WINDOW.as_secs_f64()).exp());
        self.weight = self.weight.mul_add(left, 1.0);
        self.last = Some(now);
    }

    /// How many times a second it happened until it was last noted.
    pub fn a_second(&self) -> f64 {
        self.weight / WINDOW.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::testing::NOW;

    /// The rate after so many times at this distance.
    #[track_caller]
    fn check(times: u32, millis_apart: i64, expected: f64) {
        let mut rate = Rate::default();
        for time in 0..times {
            rate.note(NOW + SignedDuration::from_millis(millis_apart) * i32::try_from(time).unwrap());
        }
        assert!((rate.a_second() - expected).abs() < 0.1, "{}", rate.a_second());
    }

    #[test]
    fn it_comes_to_what_goes_on_and_forgets_what_is_over() {
        check(0, 0, 0.0);
        check(1, 0, 0.1);
        check(100, 0, 10.0);
        check(1000, 100, 10.0);
        check(1000, 100_000, 0.1);
        let mut rate = Rate::of(60.0, NOW);
        rate.note(NOW + SignedDuration::from_secs(100));
        assert!(rate.a_second() < 0.11, "{}", rate.a_second());
    }

    #[test]
    fn a_clock_that_is_set_back_changes_little() {
        let mut rate = Rate::of(2.0, NOW);
        rate.note(NOW - SignedDuration::from_hours(1));
        assert!((rate.a_second() - 2.1).abs() < 1e-9, "{}", rate.a_second());
    }
}
