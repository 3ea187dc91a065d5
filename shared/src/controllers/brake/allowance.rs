//! How many deletions of one group may go now: a leaky bucket whose level is a share of the population.
//!
//! Each deletion fills it by its part of the population, it drains at the rate of slowed deletions, and it is full at what
//! may be deleted at once. The times are monotonic, so no step of the clock matters.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a grant lasts after it was last asked for, how long a waiting deletion is kept that does not ask at its turn, how
/// long a member counts after it is gone, and the shortest time between two reports.
const WINDOW: Duration = Duration::from_mins(10);
/// The share of the population that is deleted each minute, beyond what may be deleted at once.
const CRAWL: f64 = 0.03;
/// How long a count of the population is used: counting may read every object.
const COUNTED_FOR: Duration = Duration::from_secs(10);
/// All waiting deletions together ask about once a second: those before them may have been withdrawn.
const ASKS_APART: Duration = Duration::from_secs(1);
const SOONEST: Duration = Duration::from_secs(10);
/// Sums of fractions are not exact.
const INEXACT: f64 = 1e-9;

/// How much of a population may be deleted at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub share: f64,
    /// At least this many, so that a small cluster does not wait for nothing.
    pub least: usize,
}

/// The deletions of one group, each identified by a `U`; a deletion may be asked for repeatedly.
#[derive(Clone, Debug)]
pub struct Allowance<U> {
    limits: Limits,
    /// When each granted deletion was last asked for.
    granted: BTreeMap<U, Instant>,
    waiting: BTreeMap<U, Instant>,
    /// The turn of the last waiting deletion.
    last: Instant,
    gone: BTreeMap<U, Instant>,
    /// The fill level at the time `at`, as a share of the population.
    level: f64,
    at: Instant,
    population: usize,
    counted: Option<Instant>,
    /// When outdated entries were last dropped.
    cleaned: Instant,
    reported: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Go,
    Wait {
        /// When to ask again.
        again: Duration,
        /// The time until its turn.
        turn: Duration,
        /// Whether this is its first refusal.
        is_new: bool,
        report: bool,
    },
}

impl<U: Ord + Clone> Allowance<U> {
    pub fn new(limits: Limits, now: Instant) -> Self {
        let (granted, waiting, gone) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (level, population, counted, reported) = (0.0, 1, None, None);
        let (last, at, cleaned) = (now, now, now);
        Self { limits, granted, waiting, last, gone, level, at, population, counted, cleaned, reported }
    }

    /// Asks for a deletion. `exist` counts the members of the group that exist; those that are [`Self::gone`] are added.
    pub fn ask(&mut self, unit: &U, exist: impl FnOnce() -> usize, now: Instant) -> Answer {
        self.drain(now);
        if self.counted.is_none_or(|counted| is_over(counted, COUNTED_FOR, now)) {
            self.count(exist, now);
        }
        if let Some(asked) = self.granted.get_mut(unit) {
            *asked = now;
            return Answer::Go;
        }
        let turn = self.waiting.get(unit).copied();
        let before = self.waiting.len() - usize::from(turn.is_some());
        // Waiting deletions come first, unless it is this one's turn.
        let first = if turn.is_some_and(|turn| turn <= now) { 0 } else { before };
        if self.excess(first + 1) <= INEXACT {
            self.waiting.remove(unit);
            self.granted.insert(unit.clone(), now);
            self.level += self.part(1);
            return Answer::Go;
        }
        let next = now + self.pause(self.excess(1));
        let until = match turn {
            Some(turn) if turn > now => turn,
            None if before > 0 => next.max(self.last + self.pause(self.part(1))),
            Some(_) | None => next,
        };
        self.wait(unit, until, turn.is_none(), now)
    }

    /// Drops a waiting deletion, so that later ones do not wait for it.
    pub fn withdraw(&mut self, unit: &U) {
        self.waiting.remove(unit);
    }

    /// A member went. It counts for ten minutes, and as long as any deletion waits.
    pub fn gone(&mut self, unit: &U, now: Instant) {
        // Nobody may ask for a long time, while members come and go.
        if is_over(self.cleaned, COUNTED_FOR, now) {
            self.clean(now);
        }
        self.gone.insert(unit.clone(), now);
    }

    /// Drops what is outdated. That reads every entry, so it is not done for each member.
    fn clean(&mut self, now: Instant) {
        let Self { granted, waiting, gone, cleaned, .. } = self;
        granted.retain(|_, asked| !is_over(*asked, WINDOW, now));
        // A deletion that did not ask at its turn is no longer wanted.
        waiting.retain(|_, turn| !is_over(*turn, WINDOW, now));
        if waiting.is_empty() {
            gone.retain(|_, since| !is_over(*since, WINDOW, now));
        }
        *cleaned = now;
    }

    /// A member exists again.
    pub fn back(&mut self, unit: &U) {
        self.gone.remove(unit);
    }

    /// How many deletions wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many deletions were granted within about ten minutes, and the size of the population.
    pub fn going(&self) -> (usize, usize) {
        (self.granted.len(), self.population)
    }

    fn wait(&mut self, unit: &U, turn: Instant, is_new: bool, now: Instant) -> Answer {
        self.waiting.insert(unit.clone(), turn);
        self.last = if self.waiting.len() == 1 { turn } else { self.last.max(turn) };
        let report = self.reported.is_none_or(|reported| is_over(reported, WINDOW, now));
        if report {
            self.reported = Some(now);
        }
        let turn = turn.saturating_duration_since(now);
        let all = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let again = turn.min(SOONEST.saturating_add(ASKS_APART.saturating_mul(all)));
        Answer::Wait { again, turn, is_new, report }
    }

    fn drain(&mut self, now: Instant) {
        let minutes = now.saturating_duration_since(self.at).as_secs_f64() / 60.0;
        self.level = (self.level - minutes * self.each_minute()).max(0.0);
        self.at = now;
    }

    fn count(&mut self, exist: impl FnOnce() -> usize, now: Instant) {
        self.clean(now);
        self.population = (exist() + self.gone.len()).max(1);
        // What is full for a small population may be too full for a larger one.
        self.level = self.level.min(self.at_once());
        self.counted = Some(now);
    }

    /// By how much the bucket would be too full with so many more deletions.
    fn excess(&self, units: usize) -> f64 {
        (self.level + self.part(units) - self.at_once()).max(0.0)
    }

    /// The share that may be deleted at once.
    fn at_once(&self) -> f64 {
        self.limits.share.max(self.part(self.limits.least))
    }

    /// The share that is deleted each minute beyond it: at least one.
    fn each_minute(&self) -> f64 {
        self.part(1).max(CRAWL)
    }

    fn part(&self, units: usize) -> f64 {
        number(units) / number(self.population)
    }

    /// How long slowed deletions take for this share.
    fn pause(&self, share: f64) -> Duration {
        let milliseconds = (60_000.0 * (share - INEXACT) / self.each_minute()).ceil();
        Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(WINDOW)
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Whether this much time has passed since then.
fn is_over(since: Instant, time: Duration, now: Instant) -> bool {
    now.saturating_duration_since(since) >= time
}

#[cfg(test)]
mod tests;
