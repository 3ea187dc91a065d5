//! A brake on mass deletion: it slows down deletions that no user's change explains, beyond a share of the population.
//!
//! A wrong view of the cluster, or owner references that were changed by mistake, would otherwise delete as fast as the
//! apiserver allows. Each group (a kind of object, or nodes) has a share that may be deleted at once; beyond it a few are
//! deleted each minute, and an event reports it. Each operator's plan says which deletions a user's change explains;
//! these never ask the brake. [`Allowance`] is a value: it knows no cache and no clock.

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
use crate::runtime::context::ControllerContext;
use crate::runtime::decisions::{self, Reasoned};
use crate::runtime::events::PlannedEvent;
use crate::runtime::flags::Mode;
use crate::runtime::run::Setup;
use crate::runtime::worker::Requeue;

/// The reason of the event that reports slowed deletions.
pub const MASS_DELETION_SLOWED: &str = "MassDeletionSlowed";
/// Counts each delayed deletion once.
const HELD: &str = "mass_deletion_brake_held";
const HELD_HELP: &str = "Number of deletions that were delayed because no user's change explains them";
const PURPOSE: &str = "the brake on mass deletion";

/// How long a granted deletion stays granted, and the shortest time between two events.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// The share of the population that is deleted each minute, beyond what may be deleted at once.
const CRAWL: f64 = 0.01;
/// How long a count of the population is used: counting may read every object.
const COUNTED_FOR: SignedDuration = SignedDuration::from_secs(10);
/// All waiting deletions together ask about once a second: those before them may have been withdrawn.
const ASKS_APART: SignedDuration = SignedDuration::from_secs(1);
const SOONEST: SignedDuration = SignedDuration::from_secs(10);
/// Sums of fractions are not exact.
const INEXACT: f64 = 1e-6;

/// How much of a population may be deleted at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// This share of it.
    pub share: f64,
    /// At least this many, so that a small cluster does not wait for nothing.
    pub least: usize,
}

/// Parses a flag that is a share of a population; 0 switches the brake off.
///
/// # Errors
/// If the text is not a number from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("must be from 0 to 1, but got {share}")) }
}

/// The deletions of one group, each identified by a `U`; a deletion may be asked for repeatedly.
///
/// A leaky bucket: each deletion fills it, it drains at the rate of slowed deletions, and it holds what may be deleted at
/// once.
#[derive(Clone, Debug)]
pub struct Allowance<U> {
    /// When each was granted.
    granted: BTreeMap<U, Timestamp>,
    /// The turn of each waiting deletion.
    waiting: BTreeMap<U, Timestamp>,
    /// The turn of the last waiting deletion.
    last: Timestamp,
    /// The fill level of the bucket at the time `at`.
    level: f64,
    at: Timestamp,
    population: usize,
    counted: Option<Timestamp>,
    /// When the last event was due.
    reported: Option<Timestamp>,
}

/// The answer to a request for a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Delete.
    Go,
    /// Wait.
    Wait {
        /// When to ask again.
        again: Timestamp,
        /// Its turn, and why it waits.
        held: Held,
        /// Whether this is its first refusal.
        is_new: bool,
        /// Whether an event is due.
        report: bool,
    },
}

/// A deletion that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The group.
    pub group: Text,
    /// How many deletions of the group were granted within ten minutes.
    pub going: usize,
    /// The size of the group.
    pub population: usize,
    /// Its turn.
    pub until: Time,
}

impl<U> Default for Allowance<U> {
    fn default() -> Self {
        let (granted, waiting) = (BTreeMap::new(), BTreeMap::new());
        let (last, at, level) = (Timestamp::MIN, Timestamp::MIN, 0.0);
        Self { granted, waiting, last, level, at, population: 0, counted: None, reported: None }
    }
}

impl<U: Ord + Clone> Allowance<U> {
    /// Asks for a deletion. `population` counts the group; its argument is the number of granted and waiting deletions,
    /// for groups whose deleted members no longer exist.
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
            // A deletion that did not ask at its turn is no longer wanted.
            self.waiting.retain(|_, turn| !is_over(*turn, WINDOW, now));
            let (known, waits) = (self.granted.len() + self.waiting.len(), !self.waiting.is_empty());
            let population = population(known);
            // While some wait it does not grow, because they may have been replaced already.
            self.population = if waits { population.min(self.population) } else { population };
            self.counted = Some(now);
        }
        if self.granted.contains_key(unit) {
            return Answer::Go;
        }
        let turn = self.waiting.get(unit).copied();
        let before = self.waiting.len() - usize::from(turn.is_some());
        let too_many = |count: f64| (count - limits.at_once(self.population)).max(0.0);
        // Waiting deletions come first, unless it is this one's turn.
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

    /// Drops a waiting deletion, so that later ones do not wait for it.
    pub fn withdraw(&mut self, unit: &U) {
        self.waiting.remove(unit);
    }

    fn wait(&mut self, group: &Text, unit: &U, turn: Timestamp, is_new: bool, now: Timestamp) -> Answer {
        self.waiting.insert(unit.clone(), turn);
        self.last = if self.waiting.len() == 1 { turn } else { self.last.max(turn) };
        let report = self.reported.is_none_or(|reported| is_over(reported, WINDOW, now));
        if report {
            self.reported = Some(now);
        }
        let all = i32::try_from(self.waiting.len()).unwrap_or(i32::MAX);
        let again = turn.min(after(now, SOONEST + ASKS_APART * all));
        let (going, population) = (self.granted.len(), self.population);
        let held = Held { group: group.clone(), going, population, until: Time::of(turn) };
        Answer::Wait { again, held, is_new, report }
    }

    /// How long slowed deletions take for this many.
    fn pause(&self, count: f64) -> SignedDuration {
        let milliseconds = (60_000.0 * count / self.each_minute()).ceil();
        SignedDuration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(SignedDuration::MAX)
    }

    fn each_minute(&self) -> f64 {
        (number(self.population) * CRAWL).max(1.0)
    }

    /// Drains the bucket. If the clock was set back, shifts all times by the same amount.
    fn pass(&mut self, now: Timestamp) {
        let passed = self.at.duration_until(now);
        self.at = now;
        if passed.is_positive() {
            self.level = (self.level - passed.as_secs_f64() / 60.0 * self.each_minute()).max(0.0);
        } else if passed.is_negative() {
            let times = self.granted.values_mut().chain(self.waiting.values_mut()).chain(&mut self.reported);
            for time in times.chain([&mut self.last]) {
                *time = after(*time, passed);
            }
            self.counted = None;
        }
    }
}

impl Limits {
    /// How many of a population may be deleted at once.
    fn at_once(self, population: usize) -> f64 {
        (number(population) * self.share).floor().max(number(self.least))
    }
}

/// Exact up to four billion.
fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Whether this much time has passed since then.
fn is_over(since: Timestamp, time: SignedDuration, now: Timestamp) -> bool {
    since.duration_until(now) >= time
}

/// The brake of one queue.
pub struct Brake<U> {
    /// None if it is off.
    limits: Option<Limits>,
    groups: Mutex<BTreeMap<Text, Allowance<U>>>,
    held: Counter,
    ctx: ControllerContext,
    lease: Key,
}

impl<U: Ord + Clone> Brake<U> {
    /// The brake of this context's queue. A shadow has none: it deletes nothing, and lists all that it would delete.
    pub fn new(setup: &Setup, ctx: ControllerContext, limits: Limits) -> Self {
        let held = Counter::default();
        setup.metrics().register(HELD, HELD_HELP, held.clone());
        let (flags, groups) = (setup.flags(), Mutex::default());
        let leader = &flags.leader;
        Self {
            limits: Some(limits).filter(|limits| limits.share > 0.0 && flags.mode != Mode::Shadow),
            groups,
            held,
            ctx,
            lease: Key::new(&leader.leader_elect_resource_namespace, &leader.leader_elect_resource_name),
        }
    }

    /// Asks for a deletion in the sync of this key. If it has to wait, records that as the key's decision and returns
    /// when to ask again. `group` names the population: `pods`, `nodes`. See [`Allowance::ask`] for `population`.
    pub fn ask(&self, key: &Key, group: &str, unit: &U, population: impl FnOnce(usize) -> usize) -> Option<Requeue> {
        let (limits, now, group) = (self.limits?, self.ctx.now(), Text::new(group));
        let answer = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.entry(group.clone()).or_default().ask(&group, unit, limits, population, now)
        };
        let Answer::Wait { again, held, is_new, report } = answer else { return None };
        self.ctx.decide(key, &held);
        self.held.inc_by(u64::from(is_new));
        if report {
            self.report(&held);
        }
        let wait = Duration::try_from(now.duration_until(again)).unwrap_or_default();
        Some(Requeue::After(wait, PURPOSE))
    }

    /// Drops a waiting deletion.
    pub fn withdraw(&self, unit: &U) {
        if self.limits.is_some() {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.values_mut().for_each(|group| group.withdraw(unit));
        }
    }

    /// Posts the event on the Lease: every operator may post events about its Lease.
    fn report(&self, held: &Held) {
        let Held { group, going, population, until: _ } = held;
        let (key, uid, resource_version) = (self.lease.clone(), Uid::default(), ResourceVersion::default());
        let about = ObjectReference { resource: LEASES, key, uid, resource_version };
        let message = format!(
            "Slowed down deletions: {going} of {population} {group} affected within 10m0s, and no user's change explains \
             it. --mass-deletion-share=0 removes the limit"
        );
        self.ctx.event(PlannedEvent::warning(about, MASS_DELETION_SLOWED, message));
    }
}

impl decisions::Reason for Held {}

impl Reasoned for Held {
    fn reason(&self) -> impl decisions::Reason {
        self
    }
}

/// `wait until 2026-01-01T12:00:04Z: 40 of 1000 pods affected within 10m0s, and no user's change explains it`.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, going, population, until } = self;
        write!(
            f,
            "wait until {until}: {going} of {population} {group} affected within 10m0s, and no user's change explains it"
        )
    }
}

#[cfg(test)]
mod tests;
