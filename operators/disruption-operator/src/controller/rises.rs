//! The pace of statuses that only let more pods be evicted: while the pods of many budgets roll, each count goes down and
//! up again within seconds, and every one of them would be a write and an event for whoever watches.
//!
//! Such a status is written once its numbers have stood for a while, which grows with the changes of all budgets: where
//! little happens it is none. Upstream has no such wait, but its one worker then comes to a budget as seldom.
//! Left out: which statuses can wait, which is `status`'s. A kill forgets all of it, and then one status comes sooner.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::Key;

use crate::objects::BudgetStatus;

/// How long numbers have to stand for each change a second of any budget.
const PER_RATE: Duration = Duration::from_millis(100);
/// The longest that numbers have to stand.
const LONGEST_STAND: Duration = Duration::from_secs(5);
/// Numbers that never stand are written after this time.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The time in which the changes count for their rate.
const WINDOW: Duration = Duration::from_secs(10);

/// The statuses that wait, and how often those of all budgets change.
#[derive(Debug, Default)]
pub(super) struct Rises(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Key, Waiting>,
    changes: Changes,
}

/// The numbers of a budget that are not written yet.
#[derive(Debug)]
struct Waiting {
    /// Allowed, healthy, and expected.
    numbers: [i32; 3],
    /// Since when they are these.
    since: Timestamp,
    /// Since when any numbers wait.
    first: Timestamp,
}

/// The changes of the last while, of which each weighs less the older it is.
#[derive(Debug, Default)]
struct Changes {
    weight: f64,
    last: Option<Timestamp>,
}

impl Rises {
    /// How long the status that only lets more pods be evicted waits; none if it is due.
    pub(super) fn wait(&self, key: &Key, status: &BudgetStatus, now: Timestamp) -> Option<Duration> {
        let State { waiting, changes } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = [status.disruptions_allowed, status.current_healthy, status.expected_pods];
        let known = waiting.get(key);
        let first = known.map_or(now, |known| known.first);
        let since = match known {
            Some(known) if known.numbers == numbers => known.since,
            _ => {
                changes.note(now);
                now
            }
        };
        let stand = PER_RATE.mul_f64(changes.a_second()).min(LONGEST_STAND);
        let left = left(since, stand, now)?.min(left(first, LONGEST_WAIT, now)?);
        waiting.insert(key.clone(), Waiting { numbers, since, first });
        Some(left)
    }

    /// Notes that a status is written now.
    pub(super) fn note(&self, key: &Key, now: Timestamp) {
        let State { waiting, changes } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.remove(key).is_none() {
            changes.note(now);
        }
    }

    /// Forgets the numbers that wait: they are again those that are written, or the budget is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(key);
    }
}

impl Changes {
    fn note(&mut self, now: Timestamp) {
        let passed = self.last.map(|last| now.duration_since(last).as_secs_f64());
        // A clock that was set back says nothing.
        let left = passed.map_or(0.0, |passed| (-passed.max(0.0) / WINDOW.as_secs_f64()).exp());
        self.weight = self.weight.mul_add(left, 1.0);
        self.last = Some(now);
    }

    fn a_second(&self) -> f64 {
        self.weight / WINDOW.as_secs_f64()
    }
}

/// What is left of a time that began then; none if it is over, or if the clock was set back.
fn left(since: Timestamp, time: Duration, now: Timestamp) -> Option<Duration> {
    let passed = Duration::try_from(now.duration_since(since)).ok()?;
    time.checked_sub(passed).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use shared::testing::NOW;

    use super::*;

    fn later(millis: i64) -> Timestamp {
        NOW + SignedDuration::from_millis(millis)
    }

    fn healthy(current_healthy: i32) -> BudgetStatus {
        BudgetStatus { disruptions_allowed: current_healthy - 1, current_healthy, ..BudgetStatus::default() }
    }

    /// As many changes at one time as are 50 a second.
    fn busy(rises: &Rises) {
        for budget in 0..500 {
            rises.note(&Key::new("default", &budget.to_string()), NOW);
        }
    }

    #[test]
    fn alone_a_rise_hardly_waits() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        assert_eq!(rises.wait(&key, &healthy(2), NOW), Some(Duration::from_millis(10)));
        assert_eq!(rises.wait(&key, &healthy(2), later(10)), None);
    }

    #[test]
    fn numbers_that_change_begin_to_wait_anew_but_not_for_ever() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises);
        assert_eq!(rises.wait(&key, &healthy(2), NOW), Some(LONGEST_STAND));
        assert_eq!(rises.wait(&key, &healthy(2), later(3000)), Some(Duration::from_secs(2)), "they stand");
        busy(&rises);
        assert_eq!(rises.wait(&key, &healthy(3), later(4000)), Some(LONGEST_STAND), "others");
        busy(&rises);
        assert_eq!(rises.wait(&key, &healthy(2), later(14_000)), Some(Duration::from_secs(1)), "the longest wait");
        assert_eq!(rises.wait(&key, &healthy(3), later(15_000)), None);
    }

    #[test]
    fn what_is_written_waits_no_more() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises);
        rises.wait(&key, &healthy(2), NOW);
        rises.note(&key, later(1000));
        let anew = rises.wait(&key, &healthy(2), later(2000)).map(|wait| wait.as_secs());
        assert_eq!(anew, Some(4), "after two seconds without another change");
        rises.forget(&key);
        assert_eq!(rises.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.len(), 0);
    }

    #[test]
    fn changes_of_long_ago_count_no_more() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises);
        let wait = rises.wait(&key, &healthy(2), later(100_000)).map(|wait| wait.as_millis());
        assert_eq!(wait, Some(10));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises);
        rises.wait(&key, &healthy(2), NOW);
        assert_eq!(rises.wait(&key, &healthy(2), later(-1)), None);
    }
}
