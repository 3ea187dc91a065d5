//! A brake on mass deletion: deletions that no user's change explains crawl once a share of the population has gone.
//!
//! A wrong view of the cluster, or owner references that were changed by mistake, delete as fast as the apiserver
//! takes it. So of each group (a kind of object, or nodes) a share may go at once, and then some go each minute, and
//! people are told. [`Allowance`] is a value: it knows no cache and no clock.
//! Left out: which deletions a user's change explains, which each operator's plan says. They never get here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use prometheus_client::metrics::counter::Counter;
use serde::Serialize;

use crate::api::intern::Text;
use crate::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use crate::api::resource::LEASES;
use crate::api::time::Time;
use crate::controllers::rejections::after;
use crate::runtime::clock::Clock;
use crate::runtime::decisions::{self, Decisions, Reasoned};
use crate::runtime::events::{EventType, Recorder};
use crate::runtime::flags::Mode;
use crate::runtime::queue::Queue;
use crate::runtime::run::Setup;
use crate::runtime::worker::Requeue;

/// The reason of the event that tells that deletions crawl.
pub const MASS_DELETION_SLOWED: &str = "MassDeletionSlowed";
/// The counter of deletions that were made to wait, each once.
const HELD: &str = "mass_deletion_brake_held";
const HELD_HELP: &str = "Number of deletions that no user's change explains and that were made to wait";
/// The purpose of the timer of a deletion that waits.
const PURPOSE: &str = "the brake on mass deletion";

/// What may go may be asked for again for so long, and people are told as often.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// This share of the population goes each minute beyond what may go at once.
const CRAWL: f64 = 0.01;
/// The population is counted again after so long: to count may need a look at everything.
const COUNTED_FOR: SignedDuration = SignedDuration::from_secs(10);
/// All that wait ask about once a second together, in case those before them need to go no more.
const ASKS_APART: SignedDuration = SignedDuration::from_secs(1);
const SOONEST: SignedDuration = SignedDuration::from_secs(10);
/// Sums of fractions are not exact.
const INEXACT: f64 = 1e-6;

/// How much of a population may go at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// This part of it.
    pub share: f64,
    /// And in any case so many, or a small cluster would wait for nothing.
    pub least: usize,
}

/// Parses a flag that is a share of a population: 0 switches the brake off.
///
/// # Errors
/// When it is no number from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("must be from 0 to 1, but got {share}")) }
}

/// The deletions of one group; each is known by a `U`, and may be asked for as often as one likes.
///
/// A leaky bucket: each deletion fills it, what crawls leaks out of it, and it holds what may go at once. So no moment
/// lets more go than the ones around it.
#[derive(Clone, Debug)]
pub struct Allowance<U> {
    /// Since when these may go.
    granted: BTreeMap<U, Timestamp>,
    /// When it is the turn of each of these.
    waiting: BTreeMap<U, Timestamp>,
    /// When it is the turn of the last of these.
    last: Timestamp,
    /// How full the bucket is.
    level: f64,
    /// When it was.
    at: Timestamp,
    population: usize,
    counted: Option<Timestamp>,
    told: Option<Timestamp>,
}

/// The answer to who asks for a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may go.
    Go,
    /// It has to wait.
    Wait {
        /// When it is to ask again.
        again: Timestamp,
        /// When it is its turn, for people, and why.
        held: Held,
        /// It has not waited before.
        is_new: bool,
        /// People are to be told.
        tell: bool,
    },
}

/// A deletion that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The group.
    pub group: Text,
    /// How many of it may go, or went, within ten minutes.
    pub going: usize,
    /// How many there are.
    pub population: usize,
    /// When it is its turn.
    pub until: Time,
}

impl<U> Default for Allowance<U> {
    fn default() -> Self {
        let (granted, waiting) = (BTreeMap::new(), BTreeMap::new());
        let (last, at, level) = (Timestamp::MIN, Timestamp::MIN, 0.0);
        Self { granted, waiting, last, level, at, population: 0, counted: None, told: None }
    }
}

impl<U: Ord + Clone> Allowance<U> {
    /// Asks for a deletion. `population` is called now and then, with how many go or wait, for where these do not
    /// exist any more.
    pub fn ask(
        &mut self,
        group: &Text,
        unit: &U,
        limits: Limits,
        population: impl FnOnce(usize) -> usize,
        now: Timestamp,
    ) -> Answer {
        self.pass(now);
        if self.counted.is_none_or(|counted| is_over(counted, COUNTED_FOR, now)) {
            self.granted.retain(|_, since| !is_over(*since, WINDOW, now));
            // One that has not asked when it was its turn is not wanted any more.
            self.waiting.retain(|_, turn| !is_over(*turn, WINDOW, now));
            let (known, waits) = (self.granted.len() + self.waiting.len(), !self.waiting.is_empty());
            let population = population(known);
            // It does not grow while some wait, for these may have been replaced already.
            self.population = if waits { population.min(self.population) } else { population };
            self.counted = Some(now);
        }
        if self.granted.contains_key(unit) {
            return Answer::Go;
        }
        let turn = self.waiting.get(unit).copied();
        let before = self.waiting.len() - usize::from(turn.is_some());
        let too_many = |count: f64| (count - limits.at_once(self.population)).max(0.0);
        // Those that wait were there first, unless it is the turn of this one.
        let first = if turn.is_some_and(|turn| turn <= now) { 0 } else { before };
        if too_many(self.level + number(first) + 1.0) <= INEXACT {
            self.waiting.remove(unit);
            self.granted.insert(unit.clone(), now);
            self.level += 1.0;
            return Answer::Go;
        }
        let next = after(now, self.pause(too_many(self.level + 1.0)));
        let until = match turn {
            Some(turn) if turn > now => turn,
            None if before > 0 => next.max(after(self.last, self.pause(1.0))),
            Some(_) | None => next,
        };
        self.wait(group, unit, until, turn.is_none(), now)
    }

    /// This one does not have to go any more: those that come later do not have to wait for it.
    pub fn withdraw(&mut self, unit: &U) {
        self.waiting.remove(unit);
    }

    fn wait(&mut self, group: &Text, unit: &U, turn: Timestamp, is_new: bool, now: Timestamp) -> Answer {
        self.waiting.insert(unit.clone(), turn);
        self.last = if self.waiting.len() == 1 { turn } else { self.last.max(turn) };
        let tell = self.told.is_none_or(|told| is_over(told, WINDOW, now));
        if tell {
            self.told = Some(now);
        }
        let all = i32::try_from(self.waiting.len()).unwrap_or(i32::MAX);
        let again = turn.min(after(now, SOONEST + ASKS_APART * all));
        let (going, population) = (self.granted.len(), self.population);
        let held = Held { group: group.clone(), going, population, until: Time::of(turn) };
        Answer::Wait { again, held, is_new, tell }
    }

    /// The time in which so many go beyond those that may go at once.
    fn pause(&self, count: f64) -> SignedDuration {
        let milliseconds = (60_000.0 * count / self.each_minute()).ceil();
        SignedDuration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(SignedDuration::MAX)
    }

    fn each_minute(&self) -> f64 {
        (number(self.population) * CRAWL).max(1.0)
    }

    /// What crawls leaks out. A clock that was set back takes all times along.
    fn pass(&mut self, now: Timestamp) {
        let passed = self.at.duration_until(now);
        self.at = now;
        if passed.is_positive() {
            self.level = (self.level - passed.as_secs_f64() / 60.0 * self.each_minute()).max(0.0);
        } else if passed.is_negative() {
            let times = self.granted.values_mut().chain(self.waiting.values_mut()).chain(&mut self.told);
            for time in times.chain([&mut self.last]) {
                *time = after(*time, passed);
            }
            self.counted = None;
        }
    }
}

impl Limits {
    /// How many of so many may go at once.
    fn at_once(self, population: usize) -> f64 {
        (number(population) * self.share).floor().max(number(self.least))
    }
}

/// No cluster has more than four billion of anything.
fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Whether so much time has passed since then.
fn is_over(since: Timestamp, time: SignedDuration, now: Timestamp) -> bool {
    since.duration_until(now) >= time
}

/// The brake of one queue.
pub struct Brake<U> {
    /// None if it is off.
    limits: Option<Limits>,
    groups: Mutex<BTreeMap<Text, Allowance<U>>>,
    held: Counter,
    recorder: Recorder,
    clock: Clock,
    decisions: Decisions,
    lease: Key,
}

impl<U: Ord + Clone> Brake<U> {
    /// The brake of this queue. A shadow has none: it deletes nothing, and lists everything that it would delete.
    pub fn new(setup: &Setup, queue: &Queue, limits: Limits) -> Self {
        let held = Counter::default();
        setup.metrics().register(HELD, HELD_HELP, held.clone());
        let (flags, groups) = (setup.flags(), Mutex::default());
        let leader = &flags.leader;
        Self {
            limits: Some(limits).filter(|limits| limits.share > 0.0 && flags.mode != Mode::Shadow),
            groups,
            held,
            recorder: setup.recorder(),
            clock: setup.clock(),
            decisions: setup.decisions(queue),
            lease: Key::new(&leader.leader_elect_resource_namespace, &leader.leader_elect_resource_name),
        }
    }

    /// Asks for a deletion in the sync of this key. Gives when to ask again if it has to wait, which is noted as the
    /// key's decision. `group` is what there are so many of: `pods`, `nodes`. Its
    /// `population` is called now and then, with how many of these go or wait, for where they do not exist any more.
    pub fn ask(&self, key: &Key, group: &str, unit: &U, population: impl FnOnce(usize) -> usize) -> Option<Requeue> {
        let (limits, now, group) = (self.limits?, self.clock.now(), Text::new(group));
        let answer = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.entry(group.clone()).or_default().ask(&group, unit, limits, population, now)
        };
        let Answer::Wait { again, held, is_new, tell } = answer else { return None };
        self.decisions.record(now, key, &held);
        self.held.inc_by(u64::from(is_new));
        if tell {
            self.tell(&held);
        }
        let wait = Duration::try_from(now.duration_until(again)).unwrap_or_default();
        Some(Requeue::After(wait, PURPOSE))
    }

    /// This one does not have to go any more.
    pub fn withdraw(&self, unit: &U) {
        if self.limits.is_some() {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.values_mut().for_each(|group| group.withdraw(unit));
        }
    }

    /// The event is the Lease's, which every operator may tell of.
    fn tell(&self, held: &Held) {
        let Held { group, going, population, until: _ } = held;
        let (key, uid, resource_version) = (self.lease.clone(), Uid::default(), ResourceVersion::default());
        let about = ObjectReference { resource: LEASES, key, uid, resource_version };
        let message = format!(
            "Deletions crawl: {going} of {population} {group} go within 10m0s, and no user's change explains it. \
             --mass-deletion-share=0 lets all go"
        );
        self.recorder.event(&about, EventType::Warning, MASS_DELETION_SLOWED, message);
    }
}

impl decisions::Reason for Held {}

impl Reasoned for Held {
    fn reason(&self) -> impl decisions::Reason {
        self
    }
}

/// `wait until 2026-01-01T12:00:04Z: 40 of 1000 pods go within 10m0s, and no user's change explains it`.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, going, population, until } = self;
        write!(
            f,
            "wait until {until}: {going} of {population} {group} go within 10m0s, and no user's change explains it"
        )
    }
}

#[cfg(test)]
mod tests;
