//! The order of writes and decisions: others write to the status of a key's object, and a status is decided here. This
//! is a value that is told the time.
//!
//! The writes and decisions of a key are kept since it last was at rest, and then judged. Left out: the content of the
//! writes, which is compared at rest, and how any of it is seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::wishes::{REST, RESTLESS, Subject};
use crate::api::intern::Text;
use crate::api::object::ResourceVersion;

/// The number of keys whose writes and decisions are kept at a time; those of more keys meanwhile are not judged.
const KEYS_MAX: usize = 10_000;
/// So many writes and versions of one key are kept.
const OF_KEY_MAX: usize = 16;
/// So many undecided writes are listed, the latest ones.
const LISTED_MAX: usize = 100;

/// The relation of somebody else's write to the decisions here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judgement {
    /// A status was decided here, and this was seen later.
    DecidedBefore,
    /// This was seen, and a sync whose cache had not seen it still decided a status.
    DecidedAfter,
    /// A sync that something else led to, around the same time, found nothing left to write: its decision without that
    /// write is not known.
    Overtaken,
    /// Nothing but such writes led to a sync, and none decided a status.
    Undecided,
}

impl Judgement {
    pub(super) const ALL: [Self; 4] = [Self::DecidedBefore, Self::DecidedAfter, Self::Overtaken, Self::Undecided];

    /// As the metrics call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DecidedBefore => "decided_before",
            Self::DecidedAfter => "decided_after",
            Self::Overtaken => "overtaken",
            Self::Undecided => "undecided",
        }
    }
}

/// A status that somebody else wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusWrite {
    pub(super) version: ResourceVersion,
    pub(super) manager: Text,
    /// When it was seen here.
    pub(super) time: Timestamp,
}

/// The cause of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// The key's own object in this version.
    Itself(ResourceVersion),
    /// Another object, a timer or a retry.
    Other,
}

/// All keys to which something happened lately.
#[derive(Default)]
pub(super) struct Timings {
    keys: BTreeMap<Subject, Period>,
    /// When to look whether a key is at rest.
    due: VecDeque<(Instant, Subject)>,
    counts: BTreeMap<Judgement, u64>,
    listed: VecDeque<(Subject, StatusWrite)>,
}

/// One key since it last was at rest.
struct Period {
    began: Instant,
    touched: Instant,
    /// Since when a status is decided that nobody has written.
    decided: Option<Instant>,
    /// Writes that nothing was decided for so far.
    unmatched: Vec<(Instant, StatusWrite)>,
    /// Something else led to a sync.
    had_cause: bool,
    /// The versions of the object that led to syncs, and those that somebody's write of the status has made.
    own: BTreeSet<ResourceVersion>,
    written: BTreeSet<ResourceVersion>,
}

impl Period {
    fn new(now: Instant) -> Self {
        let (own, written) = (BTreeSet::new(), BTreeSet::new());
        Self { began: now, touched: now, decided: None, unmatched: Vec::new(), had_cause: false, own, written }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.touched) >= REST || now.saturating_duration_since(self.began) >= RESTLESS
    }

    /// An edit of the object led to a sync, too.
    fn was_edited(&self) -> bool {
        self.own.difference(&self.written).next().is_some()
    }
}

impl Timings {
    /// The key's period, unless too many others have one.
    fn period(&mut self, subject: &Subject, now: Instant) -> Option<&mut Period> {
        let is_known = self.keys.contains_key(subject);
        if !is_known && self.keys.len() >= KEYS_MAX {
            return None;
        }
        if !is_known {
            self.due.push_back((now + REST, subject.clone()));
        }
        let period = self.keys.entry(subject.clone()).or_insert_with(|| Period::new(now));
        period.touched = now;
        Some(period)
    }

    /// Somebody else's write was seen. Gives how long ago it was decided here, if it was.
    pub(super) fn written(&mut self, subject: &Subject, now: Instant, write: StatusWrite) -> Option<Duration> {
        self.settle(now);
        let period = self.period(subject, now)?;
        if period.written.len() < OF_KEY_MAX {
            period.written.insert(write.version);
        }
        let Some(decided) = period.decided.take() else {
            if period.unmatched.len() < OF_KEY_MAX {
                period.unmatched.push((now, write));
            }
            return None;
        };
        self.count(Judgement::DecidedBefore);
        Some(now.saturating_duration_since(decided))
    }

    /// A sync has ended, and wants to write the status or not. Gives how long before that somebody else's write was seen
    /// that this sync still wants, if there is one.
    pub(super) fn synced(&mut self, subject: &Subject, now: Instant, lead: Lead, wants: bool) -> Option<Duration> {
        self.settle(now);
        let period = self.period(subject, now)?;
        match lead {
            Lead::Itself(version) if period.own.len() < OF_KEY_MAX => drop(period.own.insert(version)),
            Lead::Itself(_) | Lead::Other => period.had_cause = true,
        }
        if !wants {
            period.decided = None;
            return None;
        }
        if period.unmatched.is_empty() {
            period.decided.get_or_insert(now);
            return None;
        }
        let (seen, _) = period.unmatched.remove(0);
        self.count(Judgement::DecidedAfter);
        Some(now.saturating_duration_since(seen))
    }

    fn count(&mut self, judgement: Judgement) {
        *self.counts.entry(judgement).or_default() += 1;
    }

    /// Judges what has come to rest.
    pub(super) fn settle(&mut self, now: Instant) {
        while self.due.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, subject)) = self.due.pop_front() else { return };
            let Some(period) = self.keys.get(&subject) else { continue };
            if !period.is_over(now) || period.decided.is_some() && period.unmatched.is_empty() {
                // A decision that is not written yet may be written at any time.
                self.due.push_back((now + REST, subject));
                continue;
            }
            let Some(period) = self.keys.remove(&subject) else { continue };
            let is_undecided = !period.had_cause && !period.was_edited();
            for (_, write) in period.unmatched {
                if !is_undecided {
                    self.count(Judgement::Overtaken);
                    continue;
                }
                self.count(Judgement::Undecided);
                self.listed.truncate(LISTED_MAX - 1);
                self.listed.push_front((subject.clone(), write));
            }
        }
    }

    /// How many writes were judged how.
    pub(super) fn counted(&self, judgement: Judgement) -> u64 {
        self.counts.get(&judgement).copied().unwrap_or_default()
    }

    /// The undecided ones, the latest first.
    pub(super) fn undecided(&self) -> impl Iterator<Item = &(Subject, StatusWrite)> {
        self.listed.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::object::Key;

    /// Something that happens at a second.
    #[derive(Clone, Copy)]
    enum Happens {
        /// Somebody writes this version.
        Writes(u64),
        /// A sync decides a status, or doesn't.
        Wants(Lead),
        Rests(Lead),
    }
    use Happens::{Rests, Wants, Writes};

    const OTHER: Lead = Lead::Other;

    fn own(version: u64) -> Lead {
        Lead::Itself(ResourceVersion(version))
    }

    fn write(version: u64) -> StatusWrite {
        StatusWrite {
            version: ResourceVersion(version),
            manager: Text::new("kube-controller-manager"),
            time: Timestamp::UNIX_EPOCH,
        }
    }

    /// Checks the counts a minute after the last event, and the delays that were told, in seconds.
    #[track_caller]
    fn check(happens: &[(u64, Happens)], counts: [u64; 4], told: &[u64]) {
        let (mut timings, start, subject) = (Timings::default(), Instant::now(), ("test", Key::new("ns", "a")));
        let mut times = Vec::new();
        for (second, happens) in happens {
            let now = start + Duration::from_secs(*second);
            times.extend(match happens {
                Writes(version) => timings.written(&subject, now, write(*version)),
                Wants(lead) => timings.synced(&subject, now, *lead, true),
                Rests(lead) => timings.synced(&subject, now, *lead, false),
            });
        }
        let end = start + Duration::from_secs(happens.last().map_or(0, |(second, _)| *second) + 60);
        timings.settle(end);
        let counted = Judgement::ALL.map(|judgement| timings.counted(judgement));
        assert_eq!(counted, counts, "before, after, overtaken, undecided");
        assert_eq!(times.iter().map(Duration::as_secs).collect::<Vec<_>>(), told);
        let listed = u64::try_from(timings.undecided().count()).unwrap();
        assert_eq!(listed, counts[3]);
    }

    #[test]
    fn a_write_that_was_decided_is_as_late_as_it_was_decided_before() {
        check(&[(0, Wants(OTHER)), (2, Writes(5)), (2, Rests(own(5)))], [1, 0, 0, 0], &[2]);
        check(&[(0, Wants(OTHER)), (1, Wants(OTHER)), (3, Writes(5))], [1, 0, 0, 0], &[3]);
        check(&[(0, Wants(OTHER)), (40, Writes(5))], [1, 0, 0, 0], &[40]);
        let twice = [(0, Wants(OTHER)), (1, Writes(5)), (2, Wants(OTHER)), (5, Writes(6)), (5, Rests(own(6)))];
        check(&twice, [2, 0, 0, 0], &[1, 3]);
    }

    #[test]
    fn where_the_cache_lags_a_write_is_decided_after_it_was_seen() {
        check(&[(0, Writes(5)), (4, Wants(OTHER)), (6, Rests(own(5)))], [0, 1, 0, 0], &[4]);
    }

    #[test]
    fn what_had_a_cause_of_its_own_was_overtaken() {
        check(&[(0, Writes(5)), (0, Rests(own(5))), (1, Rests(OTHER))], [0, 0, 1, 0], &[]);
        check(&[(0, Rests(OTHER)), (9, Writes(5)), (9, Rests(own(5)))], [0, 0, 1, 0], &[]);
        // Somebody has edited the object.
        check(&[(0, Rests(own(4))), (1, Writes(5)), (1, Rests(own(5)))], [0, 0, 1, 0], &[]);
        // It was decided, and became needless.
        check(&[(0, Wants(OTHER)), (1, Rests(OTHER)), (2, Writes(5))], [0, 0, 1, 0], &[]);
    }

    #[test]
    fn what_nothing_but_the_write_itself_led_to_is_undecided() {
        check(&[(0, Writes(5)), (0, Rests(own(5)))], [0, 0, 0, 1], &[]);
        // Whichever of the two watches is the first to tell.
        check(&[(0, Rests(own(5))), (0, Writes(5)), (1, Writes(6)), (1, Rests(own(6)))], [0, 0, 0, 2], &[]);
        check(&[(0, Rests(OTHER)), (10, Writes(5)), (10, Rests(own(5)))], [0, 0, 0, 1], &[]);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut timings, start) = (Timings::default(), Instant::now());
        for n in 0..KEYS_MAX + 10 {
            let subject = ("test", Key::new("ns", &n.to_string()));
            for version in 0..20 {
                timings.written(&subject, start, write(version));
            }
        }
        assert_eq!((timings.keys.len(), timings.due.len()), (KEYS_MAX, KEYS_MAX));
        timings.settle(start + REST);
        assert_eq!((timings.keys.len(), timings.due.len(), timings.listed.len()), (0, 0, LISTED_MAX));
        assert_eq!(timings.counted(Judgement::Undecided), u64::try_from(KEYS_MAX * OF_KEY_MAX).unwrap());
    }
}
