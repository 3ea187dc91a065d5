//! The pace of statuses: while pods come by the hundred, of one large set or of many, each makes another status, and every
//! watcher of the sets is sent all of them.
//!
//! Where a sync has nothing to write but counts in between, these wait for a moment that grows with the number of pods:
//! all of them, or where others act by the counts those that are still to come. Where nobody does, it grows also with the
//! statuses that this process writes a second, of all its sets.
//! Upstream has no such wait, but its sync of a large set takes about as long; where it does not, a count in between comes
//! later here by that moment.
//! Left out: the counts that are in between, which each controller knows. A status that says that something is done, or
//! that tells of another template, never waits; nor do counts that fall, where another controller goes by them. A kill
//! forgets all of it, and then one status comes sooner.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::rate::Rate;
use crate::api::object::Key;
use crate::runtime::clock::left_of;

/// Below so many pods no status waits because of them.
const FEW: usize = 100;
/// The time between two statuses of a set for each pod there is.
const PER_POD: Duration = Duration::from_micros(400);
/// The longest time between two statuses of a set because of its pods.
const LONGEST: Duration = Duration::from_secs(1);
/// Below so many statuses a second, of all sets, none waits because of them.
const FEW_A_SECOND: f64 = 3.0;
/// The time between two statuses of a set for each status a second.
const PER_RATE: Duration = Duration::from_millis(200);
/// The longest time between two statuses of a set.
const LONGEST_OF_MANY: Duration = Duration::from_secs(2);
/// The purpose of the timer of a status that waits.
pub const NEXT_STATUS: &str = "the next status";

/// When statuses were written of late.
#[derive(Debug)]
pub struct Pace {
    goes_by_rate: bool,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    /// The last status of each set, for as long as another may wait because of it.
    last: BTreeMap<Key, Timestamp>,
    /// The same, the oldest first, with those that were followed by another.
    in_order: VecDeque<(Timestamp, Key)>,
    rate: Rate,
}

impl Pace {
    /// For sets by whose counts other controllers act: how many statuses there are of other sets delays none.
    pub fn by_pods() -> Self {
        Self { goes_by_rate: false, written: Mutex::default() }
    }

    /// For sets whose counts are for people.
    pub fn by_pods_and_rate() -> Self {
        Self { goes_by_rate: true, ..Self::by_pods() }
    }

    /// How long the next status of a set of so many pods waits, if it has nothing but counts in between; none if it is to
    /// be written now, which is noted.
    pub fn put_off(&self, key: &Key, pods: usize, is_in_between: bool, now: Timestamp) -> Option<Duration> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = if self.goes_by_rate { written.rate.a_second() } else { 0.0 };
        let wait =
            written.last.get(key).filter(|_| is_in_between).and_then(|last| left_of(apart(pods, rate), *last, now));
        if wait.is_none() {
            written.note(key, now);
        }
        wait
    }
}

/// The time between two statuses of a set of so many pods, while so many a second are written.
fn apart(pods: usize, rate: f64) -> Duration {
    let for_pods = PER_POD.saturating_mul(u32::try_from(pods).unwrap_or(u32::MAX)).min(LONGEST);
    let for_pods = if pods < FEW { Duration::ZERO } else { for_pods };
    let for_rate = if rate < FEW_A_SECOND { Duration::ZERO } else { PER_RATE.mul_f64(rate).min(LONGEST_OF_MANY) };
    for_pods.max(for_rate)
}

impl Written {
    fn note(&mut self, key: &Key, now: Timestamp) {
        self.rate.note(now);
        self.last.insert(key.clone(), now);
        self.in_order.push_back((now, key.clone()));
        while let Some((at, key)) = self.in_order.pop_front_if(|(at, _)| left_of(LONGEST_OF_MANY, *at, now).is_none()) {
            if self.last.get(&key) == Some(&at) {
                self.last.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::testing::NOW;

    fn later(millis: i64) -> Timestamp {
        NOW + SignedDuration::from_millis(millis)
    }

    #[track_caller]
    fn check(pods: usize, rate: f64, expected: u128) {
        assert_eq!(apart(pods, rate).as_millis(), expected);
    }

    #[test]
    fn statuses_are_apart_of_large_sets_and_where_many_are_written_and_others_are_not() {
        check(99, 0.1, 0);
        check(100, 0.1, 40);
        check(1000, 0.1, 400);
        check(5000, 0.1, 1000);
        check(1, 2.9, 0);
        check(1, 3.0, 600);
        check(1000, 3.0, 600);
        check(2000, 3.0, 800);
        check(1, 100.0, 2000);
        check(usize::MAX, 0.1, 1000);
    }

    #[test]
    fn only_counts_in_between_wait_and_what_is_written_is_noted() {
        let (pace, key) = (Pace::by_pods(), Key::new("default", "web"));
        assert_eq!(pace.put_off(&key, 1000, true, NOW), None, "the first");
        assert_eq!(pace.put_off(&key, 1000, true, later(100)), Some(Duration::from_millis(300)));
        assert_eq!(pace.put_off(&key, 1000, false, later(200)), None, "it says more");
        assert_eq!(pace.put_off(&key, 1000, true, later(300)), Some(Duration::from_millis(300)));
        assert_eq!(pace.put_off(&Key::new("default", "other"), 1000, true, later(300)), None, "another");
        assert_eq!(pace.put_off(&key, 1000, true, later(600)), None);
        assert_eq!(pace.put_off(&key, 1000, true, later(500)), None, "the clock was set back");
    }

    #[test]
    fn only_where_nobody_acts_by_the_counts_statuses_of_others_count() {
        for (pace, expected) in [(Pace::by_pods(), None), (Pace::by_pods_and_rate(), Some(Duration::from_secs(2)))] {
            let key = Key::new("default", "web");
            pace.put_off(&key, 1, true, NOW);
            pace.written.lock().unwrap().rate = Rate::of(20.0, NOW);
            assert_eq!(pace.put_off(&key, 1, true, NOW), expected);
        }
    }

    #[test]
    fn what_makes_nothing_wait_any_more_is_forgotten() {
        let mut written = Written::default();
        let note = |written: &mut Written, name: &str, at| {
            written.note(&Key::new("default", name), later(at));
            let mut names: Vec<String> = written.last.keys().map(|key| key.name().to_owned()).collect();
            names.sort();
            (names.join(" "), written.in_order.len())
        };
        assert_eq!(note(&mut written, "a", 0), ("a".to_owned(), 1));
        assert_eq!(note(&mut written, "b", 10), ("a b".to_owned(), 2));
        assert_eq!(note(&mut written, "a", 500), ("a b".to_owned(), 3));
        assert_eq!(note(&mut written, "c", 2200), ("a c".to_owned(), 2));
        assert_eq!(note(&mut written, "d", -5000), ("d".to_owned(), 1), "the clock was set back");
    }
}
