//! The pace of statuses: while the pods of a large set come by the hundred, each makes another status, and every watcher
//! of the set is sent all of them.
//!
//! Where a sync has nothing to write but counts in between, these wait for a moment that grows with the number of pods:
//! all of them, or where others act by the counts those that are still to come.
//! Upstream has no such wait, but its sync of a large set takes about as long; where it does not, a count in between comes
//! later here by that moment.
//! Left out: the counts that are in between, which each controller knows. A status that says that something is done, or
//! that tells of another template, never waits; nor do counts that fall, where another controller goes by them. A kill
//! forgets all of it, and then one status comes sooner.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::api::object::Key;
use crate::runtime::clock::left_of;

/// Below so many pods no status waits.
const FEW: usize = 100;
/// The time between two statuses for each pod there is.
const PER_POD: Duration = Duration::from_micros(400);
/// The longest time between two statuses.
const LONGEST: Duration = Duration::from_secs(1);
/// The purpose of the timer of a status that waits.
pub const NEXT_STATUS: &str = "the next status";

/// When the statuses of large sets were written.
#[derive(Debug, Default)]
pub struct Pace {
    written: Mutex<BTreeMap<Key, Timestamp>>,
}

impl Pace {
    fn written(&self) -> MutexGuard<'_, BTreeMap<Key, Timestamp>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the next status of a set of so many pods waits, if it has nothing but counts in between; none if it is to
    /// be written now, which is noted.
    pub fn put_off(&self, key: &Key, pods: usize, is_in_between: bool, now: Timestamp) -> Option<Duration> {
        let wait = if is_in_between { self.wait(key, pods, now) } else { None };
        if wait.is_none() {
            self.note(key, pods, now);
        }
        wait
    }

    fn wait(&self, key: &Key, pods: usize, now: Timestamp) -> Option<Duration> {
        if pods < FEW {
            return None;
        }
        let apart = PER_POD.saturating_mul(u32::try_from(pods).unwrap_or(u32::MAX)).min(LONGEST);
        left_of(apart, *self.written().get(key)?, now)
    }

    fn note(&self, key: &Key, pods: usize, now: Timestamp) {
        if pods < FEW {
            self.forget(key);
        } else {
            self.written().insert(key.clone(), now);
        }
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, key: &Key) {
        self.written().remove(key);
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

    #[test]
    fn statuses_of_large_sets_are_apart_and_those_of_small_ones_are_not() {
        let (pace, key) = (Pace::default(), Key::new("default", "web"));
        for (pods, apart) in [(99, 0_u128), (100, 40), (1000, 400), (5000, 1000)] {
            assert_eq!(pace.wait(&key, pods, NOW), None, "the first of {pods}");
            pace.note(&key, pods, NOW);
            let wait = |at| pace.wait(&key, pods, later(at)).map_or(0, |wait| wait.as_millis());
            assert_eq!((wait(0), wait(30)), (apart, apart.saturating_sub(30)), "{pods}");
            assert_eq!(wait(1000), 0, "{pods}");
            pace.forget(&key);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing() {
        let (pace, key) = (Pace::default(), Key::new("default", "web"));
        pace.note(&key, 1000, NOW);
        assert_eq!(pace.wait(&key, 1000, later(-1)), None);
    }

    #[test]
    fn a_set_that_got_small_is_forgotten() {
        let (pace, key) = (Pace::default(), Key::new("default", "web"));
        pace.note(&key, 1000, NOW);
        pace.note(&key, 1, later(10));
        assert_eq!(pace.wait(&key, 1000, later(10)), None);
    }
}
