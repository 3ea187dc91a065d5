//! The pace of statuses that only let more pods be evicted: while the pods of many budgets roll, each count goes down and
//! up again within seconds, and every one of them would be a write and an event for whoever watches.
//!
//! Such a status is written once its numbers have stood for a while, which grows with the changes of all budgets: where
//! little happens it is hardly anything. Upstream has no such wait, but its one worker then comes to a budget as seldom.
//! Left out: which statuses can wait, which is `status`'s. A kill forgets all of it, and then one status comes sooner.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::Key;
use shared::controllers::rate::Rate;
use shared::runtime::clock::left_of;

use crate::objects::BudgetStatus;

/// How long statuses wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// How long numbers have to stand for each change a second of any budget.
    per_rate: Duration,
    /// The longest that numbers have to stand.
    stand: Duration,
    /// Numbers that never stand are written after this time.
    wait: Duration,
}

impl Pace {
    /// Where somebody may wait for the numbers.
    pub(super) const PROMPT: Self =
        Self { per_rate: Duration::from_millis(100), stand: Duration::from_secs(5), wait: Duration::from_secs(15) };
    /// Where pods roll and nobody is known to evict any: their owner takes away again what rises, and each such write
    /// would be followed by one that takes it back.
    pub(super) const ROLLING: Self =
        Self { per_rate: Duration::from_secs(2), stand: Duration::from_mins(1), wait: Duration::from_mins(3) };
}

/// The statuses that wait, and how often those of all budgets change.
#[derive(Debug, Default)]
pub(super) struct Rises(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    standing: BTreeMap<Key, Standing>,
    changes: Rate,
}

/// The numbers of a budget that were decided last.
#[derive(Debug)]
struct Standing {
    numbers: Numbers,
    /// Since when they are these.
    since: Timestamp,
    /// None if these were written. A write that was refused, or that a shadow leaves out, is due again at once.
    waits: Option<Waits>,
}

/// Since when any numbers of a budget wait.
#[derive(Clone, Copy, Debug)]
struct Waits {
    since: Timestamp,
    pace: Pace,
    /// Since when at this pace: the first numbers after a roll are seldom the last.
    paced: Timestamp,
}

/// Allowed, healthy, and expected.
type Numbers = [i32; 3];

impl Rises {
    /// How long the status that only lets more pods be evicted waits; none if it is due.
    pub(super) fn wait(&self, key: &Key, status: &BudgetStatus, pace: &Pace, now: Timestamp) -> Option<Duration> {
        let mut state = self.state();
        let mut waits = Waits { since: now, pace: *pace, paced: now };
        if let Some(known) = state.standing.get(key).and_then(|known| known.waits) {
            let paced = if known.pace == *pace { known.paced } else { now };
            waits = Waits { since: known.since, paced, ..waits };
        }
        let since = state.decided(key, status, Some(waits), now);
        let stand = pace.per_rate.mul_f64(state.changes.a_second()).min(pace.stand);
        let at_pace = left_of(stand, since, now)?.min(left_of(pace.wait, waits.paced, now)?);
        Some(at_pace.min(left_of(Pace::ROLLING.wait, waits.since, now)?))
    }

    /// Notes that a status is written now.
    pub(super) fn note(&self, key: &Key, status: &BudgetStatus, now: Timestamp) {
        self.state().decided(key, status, None, now);
    }

    /// Forgets the numbers of a budget: they are those that are written, or it is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.state().standing.remove(key);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes what was decided, and returns since when it is this.
    fn decided(&mut self, key: &Key, status: &BudgetStatus, waits: Option<Waits>, now: Timestamp) -> Timestamp {
        let numbers = [status.disruptions_allowed, status.current_healthy, status.expected_pods];
        let known = self.standing.get(key).filter(|known| known.numbers == numbers);
        let since = known.map_or(now, |known| known.since);
        if known.is_none() {
            self.changes.note(now);
        }
        self.standing.insert(key.clone(), Standing { numbers, since, waits });
        since
    }
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

    /// Until then there were 60 changes a second.
    fn busy(rises: &Rises, until: Timestamp) {
        rises.state().changes = Rate::of(60.0, until);
    }

    #[test]
    fn alone_a_rise_hardly_waits() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::PROMPT, NOW), Some(Duration::from_millis(10)));
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::PROMPT, later(10)), None);
    }

    #[test]
    fn numbers_that_change_begin_to_wait_anew_but_not_for_ever() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises, NOW);
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::PROMPT, NOW), Some(Pace::PROMPT.stand));
        assert_eq!(
            rises.wait(&key, &healthy(2), &Pace::PROMPT, later(3000)),
            Some(Duration::from_secs(2)),
            "they stand"
        );
        busy(&rises, later(4000));
        assert_eq!(rises.wait(&key, &healthy(3), &Pace::PROMPT, later(4000)), Some(Pace::PROMPT.stand), "others");
        busy(&rises, later(14_000));
        assert_eq!(
            rises.wait(&key, &healthy(2), &Pace::PROMPT, later(14_000)),
            Some(Duration::from_secs(1)),
            "the longest wait"
        );
        assert_eq!(rises.wait(&key, &healthy(3), &Pace::PROMPT, later(15_000)), None);
    }

    #[test]
    fn while_pods_roll_numbers_stand_for_longer() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises, NOW);
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::ROLLING, NOW), Some(Pace::ROLLING.stand));
        busy(&rises, later(20_000));
        assert_eq!(rises.wait(&key, &healthy(3), &Pace::ROLLING, later(20_000)), Some(Pace::ROLLING.stand));
        busy(&rises, later(170_000));
        let left = Some(Duration::from_secs(10));
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::ROLLING, later(170_000)), left, "the longest wait");
        let left = Some(Duration::from_secs(5));
        assert_eq!(rises.wait(&key, &healthy(3), &Pace::PROMPT, later(170_000)), left, "the roll is over");
        assert_eq!(rises.wait(&key, &healthy(3), &Pace::PROMPT, later(175_000)), None);
    }

    #[test]
    fn rolls_that_come_and_go_hold_nothing_for_ever() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        let paces = [Pace::ROLLING, Pace::PROMPT].into_iter().cycle();
        for (second, pace) in (0..180).step_by(2).zip(paces) {
            busy(&rises, later(second * 1000));
            let number = i32::try_from(second).unwrap();
            assert!(rises.wait(&key, &healthy(number), &pace, later(second * 1000)).is_some(), "{second}");
        }
        assert_eq!(rises.wait(&key, &healthy(1), &Pace::ROLLING, later(180_000)), None);
    }

    #[test]
    fn a_roll_alone_is_written_within_seconds() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::ROLLING, NOW), Some(Duration::from_millis(200)));
    }

    #[test]
    fn what_is_written_waits_no_more_and_is_due_again_where_the_write_was_left_out() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises, NOW);
        rises.wait(&key, &healthy(2), &Pace::PROMPT, NOW);
        rises.note(&key, &healthy(2), later(5000));
        busy(&rises, later(5001));
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::PROMPT, later(5001)), None);
        rises.note(&key, &healthy(1), later(6000));
        busy(&rises, later(7000));
        assert_eq!(
            rises.wait(&key, &healthy(2), &Pace::PROMPT, later(7000)),
            Some(Pace::PROMPT.stand),
            "they begin anew after others"
        );
        rises.forget(&key);
        assert!(!rises.state().standing.contains_key(&key));
    }

    #[test]
    fn changes_of_long_ago_count_no_more() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises, NOW);
        let wait = rises.wait(&key, &healthy(2), &Pace::PROMPT, later(100_000)).map(|wait| wait.as_millis());
        assert_eq!(wait, Some(10));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing() {
        let (rises, key) = (Rises::default(), Key::new("default", "web"));
        busy(&rises, NOW);
        rises.wait(&key, &healthy(2), &Pace::PROMPT, NOW);
        assert_eq!(rises.wait(&key, &healthy(2), &Pace::PROMPT, later(-1)), None);
    }
}
