//! The pace of statuses: while pods come by the hundred, of one large set or of many, each makes another status, and every
//! watcher of the sets is sent all of them.
//!
//! Where a sync has nothing to write but counts in between, these wait for a moment that grows with the number of pods:
//! all of them, or where others act by the counts those that are still to come. It grows also with the statuses that this
//! process writes a second, of all its sets: soon where the counts are for people alone, and where others act by them only
//! once there are so many that the apiserver is what they wait for.
//! Upstream has no such wait, but its sync of a large set takes about as long; where it does not, a count in between comes
//! later here by that moment.
//! A sync that makes or deletes pods, or scales a set, has not seen what comes of it. If it has no more to say than that
//! it has seen the spec, or counts in between, the sync that sees it says so with the counts.
//! Left out: the counts that are in between, which each controller knows. A status that says that something is done, or
//! that tells of another template with counts of its own, never waits; nor do counts that fall, where another controller
//! goes by them. A kill forgets all of it, and then one status comes sooner.

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
/// The longest time between two statuses of a set.
const LONGEST_OF_ALL: Duration = FOR_PEOPLE.longest;

/// How long a status that tells little waits for what was made, deleted or scaled.
const UNTIL_SEEN: Duration = Duration::from_secs(1);
/// The start of such a wait is remembered for so long, as syncs may be that far behind.
const WAITING: Duration = Duration::from_mins(1);

/// How the statuses a second of all sets keep those of one apart.
#[derive(Debug)]
struct ByRate {
    /// Below so many statuses a second none waits because of them.
    few: f64,
    /// The time between two statuses of a set for each status a second.
    each: Duration,
    /// The longest time between them.
    longest: Duration,
}

const FOR_PEOPLE: ByRate = ByRate { few: 3.0, each: Duration::from_millis(200), longest: Duration::from_secs(2) };
const FOR_CONTROLLERS: ByRate = ByRate { few: 10.0, each: Duration::from_millis(50), longest: Duration::from_secs(1) };

/// The purpose of the timer of a status that waits.
pub const NEXT_STATUS: &str = "the next status";

/// When statuses were written of late.
#[derive(Debug)]
pub struct Pace {
    by_rate: &'static ByRate,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    /// The last status of each set, for as long as another may wait because of it.
    last: Recent,
    /// Since when a status waits for what was made, deleted or scaled.
    unseen: Recent,
    rate: Rate,
}

/// When something was of late, by set.
#[derive(Debug, Default)]
struct Recent {
    at: BTreeMap<Key, Timestamp>,
    /// The same, the oldest first, with what was replaced or removed meanwhile.
    in_order: VecDeque<(Timestamp, Key)>,
}

impl Pace {
    /// For sets by whose counts other controllers act.
    pub fn for_controllers() -> Self {
        Self { by_rate: &FOR_CONTROLLERS, written: Mutex::default() }
    }

    /// For sets whose counts are for people.
    pub fn for_people() -> Self {
        Self { by_rate: &FOR_PEOPLE, written: Mutex::default() }
    }

    /// How long the next status of a set of so many pods waits, if it has nothing but counts in between; none if it is to
    /// be written now, which is noted.
    pub fn put_off(&self, key: &Key, pods: usize, is_in_between: bool, now: Timestamp) -> Option<Duration> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let apart = for_pods(pods).max(self.by_rate.apart(written.rate.a_second()));
        let wait = written.last.at.get(key).filter(|_| is_in_between).and_then(|last| left_of(apart, *last, now));
        if wait.is_none() {
            written.note(key, now);
        }
        wait
    }

    /// How long a status waits that tells little, where its sync has not seen what comes of it: one that only says that the
    /// spec was seen, after pods were made or deleted, and one of counts in between, after a set was scaled. None once it
    /// has waited, or if the clock was set back since.
    pub fn until_seen(&self, key: &Key, now: Timestamp) -> Option<Duration> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let since = written.unseen.at.get(key).copied();
        if since.is_none() {
            written.unseen.note(key, now, WAITING);
        }
        left_of(UNTIL_SEEN, since.unwrap_or(now), now)
    }
}

/// The time between two statuses of a set of so many pods.
fn for_pods(pods: usize) -> Duration {
    let time = PER_POD.saturating_mul(u32::try_from(pods).unwrap_or(u32::MAX)).min(LONGEST);
    if pods < FEW { Duration::ZERO } else { time }
}

impl ByRate {
    /// The time between two statuses of a set while so many a second are written.
    fn apart(&self, rate: f64) -> Duration {
        if rate < self.few { Duration::ZERO } else { self.each.mul_f64(rate).min(self.longest) }
    }
}

impl Written {
    fn note(&mut self, key: &Key, now: Timestamp) {
        self.rate.note(now);
        self.unseen.at.remove(key);
        self.last.note(key, now, LONGEST_OF_ALL);
    }
}

impl Recent {
    /// Forgets what is older than `memory`.
    fn note(&mut self, key: &Key, now: Timestamp, memory: Duration) {
        self.at.insert(key.clone(), now);
        self.in_order.push_back((now, key.clone()));
        while let Some((at, key)) = self.in_order.pop_front_if(|(at, _)| left_of(memory, *at, now).is_none()) {
            if self.at.get(&key) == Some(&at) {
                self.at.remove(&key);
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

    #[test]
    fn statuses_of_large_sets_are_apart_and_others_are_not() {
        for (pods, expected) in [(99, 0), (100, 40), (1000, 400), (5000, 1000), (usize::MAX, 1000)] {
            assert_eq!(for_pods(pods).as_millis(), expected, "{pods}");
        }
    }

    #[test]
    fn statuses_are_apart_where_many_are_written_later_and_less_so_where_others_act_by_them() {
        for (rate, people, controllers) in
            [(2.9, 0, 0), (3.0, 600, 0), (9.9, 1980, 0), (10.0, 2000, 500), (15.0, 2000, 750), (100.0, 2000, 1000)]
        {
            let found = [FOR_PEOPLE, FOR_CONTROLLERS].map(|by_rate| by_rate.apart(rate).as_millis());
            assert_eq!(found, [people, controllers], "{rate}");
        }
    }

    #[test]
    fn only_counts_in_between_wait_and_what_is_written_is_noted() {
        let (pace, key) = (Pace::for_controllers(), Key::new("default", "web"));
        assert_eq!(pace.put_off(&key, 1000, true, NOW), None, "the first");
        assert_eq!(pace.put_off(&key, 1000, true, later(100)), Some(Duration::from_millis(300)));
        assert_eq!(pace.put_off(&key, 1000, false, later(200)), None, "it says more");
        assert_eq!(pace.put_off(&key, 1000, true, later(300)), Some(Duration::from_millis(300)));
        assert_eq!(pace.put_off(&Key::new("default", "other"), 1000, true, later(300)), None, "another");
        assert_eq!(pace.put_off(&key, 1000, true, later(600)), None);
        assert_eq!(pace.put_off(&key, 1000, true, later(500)), None, "the clock was set back");
    }

    #[test]
    fn statuses_of_others_count() {
        for (pace, expected) in [(Pace::for_controllers(), 1), (Pace::for_people(), 2)] {
            let key = Key::new("default", "web");
            assert_eq!(pace.put_off(&key, 1, true, NOW), None);
            pace.written.lock().unwrap().rate = Rate::of(20.0, NOW);
            assert_eq!(pace.put_off(&key, 1, true, NOW), Some(Duration::from_secs(expected)));
        }
    }

    #[test]
    fn that_the_spec_was_seen_waits_a_second_for_the_pods_and_a_status_begins_it_anew() {
        let (pace, key) = (Pace::for_controllers(), Key::new("default", "web"));
        let left = |millis| Some(Duration::from_millis(millis));
        assert_eq!(pace.until_seen(&key, NOW), left(1000));
        assert_eq!(pace.until_seen(&key, later(400)), left(600), "other pods were made");
        assert_eq!(pace.until_seen(&Key::new("default", "other"), later(400)), left(1000));
        assert_eq!(pace.until_seen(&key, later(1000)), None);
        assert_eq!(pace.until_seen(&key, later(5000)), None, "until it is written");
        assert_eq!(pace.until_seen(&key, later(-1)), None, "the clock was set back");
        assert_eq!(pace.put_off(&key, 1, false, later(5000)), None);
        assert_eq!(pace.until_seen(&key, later(5001)), left(1000), "of the next spec");
    }

    #[test]
    fn what_makes_nothing_wait_any_more_is_forgotten() {
        let mut recent = Recent::default();
        let note = |recent: &mut Recent, name: &str, at| {
            recent.note(&Key::new("default", name), later(at), Duration::from_secs(2));
            let mut names: Vec<String> = recent.at.keys().map(|key| key.name().to_owned()).collect();
            names.sort();
            (names.join(" "), recent.in_order.len())
        };
        assert_eq!(note(&mut recent, "a", 0), ("a".to_owned(), 1));
        assert_eq!(note(&mut recent, "b", 10), ("a b".to_owned(), 2));
        assert_eq!(note(&mut recent, "a", 500), ("a b".to_owned(), 3));
        assert_eq!(note(&mut recent, "c", 2200), ("a c".to_owned(), 2));
        assert_eq!(note(&mut recent, "d", -5000), ("d".to_owned(), 1), "the clock was set back");
    }
}
