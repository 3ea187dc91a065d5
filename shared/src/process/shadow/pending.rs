//! The pending writes of all keys, from sync to sync, and which of them are differences. Pure: the time is an argument.
//!
//! A write is pending from the sync that wanted it until a sync of the same key wants it no more. It is a difference
//! once its key has settled: the key was not synced for a while, or the write has been pending for a minute.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::write::Target;
use crate::api::explain::Difference;
use crate::api::object::Key;

/// A key that was not synced for this long has settled.
pub(super) const QUIET_PERIOD: Duration = Duration::from_secs(10);
/// A write that has been pending for this long is a difference, however often its key is synced.
pub(super) const PENDING_MAX: Duration = Duration::from_mins(1);
/// A difference is checked again after as long as it has been pending, but within this time: upstream may write without
/// an event for the key, or only after its own back-off.
const RECHECK_MAX: Duration = Duration::from_mins(5);
/// This many differences are kept with their stages and fields; the others are counted.
const LISTED_MAX: usize = 1000;
/// This many keys of a queue are told apart, with 8 bytes each.
const LOOKED_AT_MAX: usize = 1_000_000;

pub(super) type Subject = (&'static str, Key);

#[derive(Default)]
pub(super) struct PendingWrites {
    keys: BTreeMap<Subject, PendingKey>,
    listed: usize,
    /// The keys that were there at the start and have had no sync yet; none before the start.
    unseen: Option<HashSet<Subject>>,
    looked_at: BTreeMap<&'static str, HashSet<u64>>,
    hashes: RandomState,
}

struct PendingKey {
    synced: Instant,
    writes: BTreeMap<Target, PendingWrite>,
    /// The number of writes of its last sync that were not noted.
    more: u64,
}

struct PendingWrite {
    first: Instant,
    since: Timestamp,
    state: PendingState,
}

enum PendingState {
    /// Its key has not settled.
    Unsettled,
    Listed(Box<Difference>),
    /// One beyond [`LISTED_MAX`].
    Counted,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Synced {
    /// The writes that are not wanted any more, and the time after which they were not. There is no time where only a
    /// look has shown it, for it may have been so for long.
    pub(super) fulfilled: Vec<(Target, Option<Duration>)>,
    /// The differences, and since when.
    pub(super) resting: Vec<(Target, Timestamp)>,
    /// When the key is to be looked at once more, should nothing happen.
    pub(super) look: Option<Duration>,
}

impl PendingWrites {
    pub(super) fn start(&mut self, keys: impl Iterator<Item = Subject>) {
        self.unseen = Some(keys.collect());
    }

    /// Whether every key that was there at the start had a sync.
    pub(super) fn is_complete(&self) -> bool {
        self.unseen.as_ref().is_some_and(HashSet::is_empty)
    }

    /// A sync of this key has ended and wants this, and `more` that was not noted.
    pub(super) fn synced(
        &mut self,
        subject: &Subject,
        (now, time): (Instant, Timestamp),
        wanted: &BTreeSet<Target>,
        more: u64,
    ) -> Synced {
        self.note_look(subject);
        let before = self.keys.remove(subject);
        let is_quiet =
            before.as_ref().is_some_and(|before| now.saturating_duration_since(before.synced) >= QUIET_PERIOD);
        let mut old = before.map(|before| before.writes).unwrap_or_default();
        let mut synced = Synced::default();
        let mut writes = BTreeMap::new();
        let mut look = RECHECK_MAX;
        for target in wanted {
            let known = old.remove(target);
            let write = known.unwrap_or(PendingWrite { first: now, since: time, state: PendingState::Unsettled });
            let waited = now.saturating_duration_since(write.first);
            if is_quiet && !waited.is_zero() || waited >= PENDING_MAX {
                synced.resting.push((target.clone(), write.since));
                look = look.min(waited.max(QUIET_PERIOD));
            } else {
                // A difference stays until a sync at rest replaces it.
                look = QUIET_PERIOD;
            }
            writes.insert(target.clone(), write);
        }
        for (target, write) in old {
            self.listed -= usize::from(matches!(write.state, PendingState::Listed(_)));
            synced.fulfilled.push((target, (!is_quiet).then(|| now.saturating_duration_since(write.first))));
        }
        if !writes.is_empty() {
            synced.look = Some(look);
            self.keys.insert(subject.clone(), PendingKey { synced: now, writes, more });
        }
        synced
    }

    fn note_look(&mut self, subject: &Subject) {
        if let Some(unseen) = &mut self.unseen {
            unseen.remove(subject);
        }
        let looked_at = self.looked_at.entry(subject.0).or_default();
        if looked_at.len() < LOOKED_AT_MAX {
            looked_at.insert(self.hashes.hash_one(&subject.1));
        }
    }

    /// The writes that a key wanted at rest, with their decision.
    pub(super) fn found(&mut self, subject: &Subject, target: &Target, difference: Difference) {
        let Some(write) = self.keys.get_mut(subject).and_then(|pending| pending.writes.get_mut(target)) else { return };
        self.listed -= usize::from(matches!(write.state, PendingState::Listed(_)));
        let is_listed = self.listed < LISTED_MAX;
        self.listed += usize::from(is_listed);
        write.state = if is_listed { PendingState::Listed(Box::new(difference)) } else { PendingState::Counted };
    }

    /// How many keys of each queue had a sync.
    pub(super) fn looked_at(&self) -> BTreeMap<&'static str, u64> {
        let count = |keys: &HashSet<u64>| u64::try_from(keys.len()).unwrap_or(u64::MAX);
        self.looked_at.iter().map(|(queue, keys)| (*queue, count(keys))).collect()
    }

    pub(super) fn differences(&self) -> impl Iterator<Item = &Difference> {
        self.keys.values().flat_map(|pending| pending.writes.values()).filter_map(|write| match &write.state {
            PendingState::Listed(difference) => Some(&**difference),
            PendingState::Unsettled | PendingState::Counted => None,
        })
    }

    /// How many differences there are by queue and verb, and all that are not kept whole.
    pub(super) fn counts(&self) -> (BTreeMap<(&'static str, &'static str), u64>, u64) {
        let (mut counts, mut more) = (BTreeMap::new(), 0);
        for ((queue, _), pending) in &self.keys {
            let mut is_at_rest = false;
            for (target, write) in &pending.writes {
                let is_found = !matches!(write.state, PendingState::Unsettled);
                is_at_rest |= is_found;
                more += u64::from(matches!(write.state, PendingState::Counted));
                if is_found {
                    *counts.entry((*queue, target.verb)).or_default() += 1;
                }
            }
            more += if is_at_rest { pending.more } else { 0 };
        }
        (counts, more)
    }

    /// How many keys of each queue want something that is no difference yet.
    pub(super) fn moving(&self) -> BTreeMap<&'static str, u64> {
        let mut moving: BTreeMap<&str, u64> = self.looked_at.keys().map(|queue| (*queue, 0)).collect();
        for ((queue, _), pending) in &self.keys {
            let is_unsettled = pending.writes.values().any(|write| matches!(write.state, PendingState::Unsettled));
            *moving.entry(*queue).or_default() += u64::from(is_unsettled);
        }
        moving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Subject {
        ("test", Key::new("ns", name))
    }

    fn targets(names: &[&str]) -> BTreeSet<Target> {
        let target = |name: &&str| Target { verb: "create", resource: "pods".to_owned(), object: (*name).to_owned() };
        names.iter().map(target).collect()
    }

    fn difference(name: &str) -> Difference {
        Difference {
            queue: "test".to_owned(),
            key: name.to_owned(),
            verb: "create".to_owned(),
            resource: "pods".to_owned(),
            object: name.to_owned(),
            stages: Vec::new(),
            fields: Vec::new(),
            since: Timestamp::UNIX_EPOCH,
        }
    }

    /// One key whose syncs want this at these seconds; what the last one has come to.
    #[track_caller]
    fn check(syncs: &[(u64, &[&str])], resting: &[&str], fulfilled: &[(&str, Option<u64>)]) {
        let (mut pending, start, mut last) = (PendingWrites::default(), Instant::now(), Synced::default());
        for (second, wanted) in syncs {
            let now = start + Duration::from_secs(*second);
            last = pending.synced(&subject("a"), (now, Timestamp::UNIX_EPOCH), &targets(wanted), 0);
        }
        let found: Vec<&str> = last.resting.iter().map(|(target, _)| &*target.object).collect();
        assert_eq!(found, resting);
        let gone: Vec<(&str, Option<u64>)> = last
            .fulfilled
            .iter()
            .map(|(target, after)| (&*target.object, after.map(|after| after.as_secs())))
            .collect();
        assert_eq!(gone, fulfilled);
    }

    #[test]
    fn what_is_wanted_after_a_quiet_time_is_at_rest() {
        check(&[(0, &["x"])], &[], &[]);
        check(&[(0, &["x"]), (9, &["x"])], &[], &[]);
        check(&[(0, &["x"]), (10, &["x"])], &["x"], &[]);
        check(&[(0, &["x"]), (9, &["x"]), (18, &["x"])], &[], &[]);
        check(&[(0, &["x"]), (9, &["x"]), (19, &["x"])], &["x"], &[]);
        check(&[(0, &["x"]), (10, &["x", "y"])], &["x"], &[]);
        check(&[(0, &[]), (20, &["x"])], &[], &[]);
    }

    #[test]
    fn what_is_wanted_for_a_minute_is_at_rest() {
        let wanted: &[&str] = &["x"];
        let busy: Vec<(u64, &[&str])> = (0..=12).map(|n| (n * 5, wanted)).collect();
        check(&busy[..12], &[], &[]);
        check(&busy, &["x"], &[]);
    }

    #[test]
    fn a_difference_is_looked_at_again_after_as_long_as_it_has_stood() {
        let (mut pending, start) = (PendingWrites::default(), Instant::now());
        let mut sync = |second, wanted: &[&str]| {
            let now = start + Duration::from_secs(second);
            pending.synced(&subject("a"), (now, Timestamp::UNIX_EPOCH), &targets(wanted), 0).look
        };
        let mut second = 0;
        for expected in [10, 10, 20, 40, 80, 160, 300, 300] {
            assert_eq!(sync(second, &["x"]), Some(Duration::from_secs(expected)), "at {second}");
            second += expected;
        }
        assert_eq!(sync(second, &["x", "y"]), Some(QUIET_PERIOD), "the younger one decides");
        assert_eq!(sync(second + 10, &[]), None);
    }

    #[test]
    fn how_long_something_was_wanted_is_known_where_an_event_has_shown_the_end() {
        check(&[(0, &["x"]), (2, &["x"]), (3, &[])], &[], &[("x", Some(3))]);
        check(&[(0, &["x"]), (10, &[])], &[], &[("x", None)]);
        check(&[(0, &["x", "y"]), (1, &["y", "z"])], &[], &[("x", Some(1))]);
    }

    #[test]
    fn only_so_many_differences_are_kept_whole() {
        let (mut pending, start) = (PendingWrites::default(), Instant::now());
        let names: Vec<String> = (0..LISTED_MAX + 5).map(|n| n.to_string()).collect();
        let sync = |pending: &mut PendingWrites, name: &str, second, wanted: &[&str]| {
            let now = start + Duration::from_secs(second);
            pending.synced(&subject(name), (now, Timestamp::UNIX_EPOCH), &targets(wanted), 2)
        };
        for name in &names {
            sync(&mut pending, name, 0, &[name]);
            for (target, _) in sync(&mut pending, name, 10, &[name]).resting {
                pending.found(&subject(name), &target, difference(name));
            }
        }
        let (counts, more) = pending.counts();
        assert_eq!(pending.differences().count(), LISTED_MAX);
        assert_eq!(counts, BTreeMap::from([(("test", "create"), 1005)]));
        assert_eq!(more, 5 + 2 * 1005, "two writes of each sync were not noted");
        for name in &names[..10] {
            sync(&mut pending, name, 20, &[]);
        }
        assert_eq!((pending.differences().count(), pending.listed), (LISTED_MAX - 10, LISTED_MAX - 10));
        assert_eq!(pending.looked_at(), BTreeMap::from([("test", 1005)]));
    }

    #[test]
    fn the_start_is_complete_once_each_of_its_keys_had_a_sync() {
        let mut pending = PendingWrites::default();
        assert!(!pending.is_complete(), "nothing has started");
        pending.start([subject("a"), subject("b")].into_iter());
        for (name, expected) in [("c", false), ("a", false), ("b", true)] {
            pending.synced(&subject(name), (Instant::now(), Timestamp::UNIX_EPOCH), &BTreeSet::new(), 0);
            assert_eq!(pending.is_complete(), expected, "{name}");
        }
    }
}
