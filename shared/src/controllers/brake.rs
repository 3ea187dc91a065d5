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

/// A deletion counts for so long.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// This share of the population goes each minute beyond what may go at once.
const CRAWL: f64 = 0.01;
/// The population is counted again after so long: to count may need a look at everything.
const COUNTED_FOR: SignedDuration = SignedDuration::from_secs(10);

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
#[derive(Clone, Debug)]
pub struct Allowance<U> {
    /// Since when these may go.
    granted: BTreeMap<U, Timestamp>,
    /// When each of these is to ask again.
    waiting: BTreeMap<U, Timestamp>,
    /// When the next one may go.
    next: Timestamp,
    /// When the last of those that wait is to ask again.
    last: Timestamp,
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
        until: Timestamp,
        /// The same for people, and why.
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
    /// When it is asked for again.
    pub until: Time,
}

impl<U> Default for Allowance<U> {
    fn default() -> Self {
        let (granted, waiting) = (BTreeMap::new(), BTreeMap::new());
        let (next, last) = (Timestamp::MIN, Timestamp::MIN);
        Self { granted, waiting, next, last, population: 0, counted: None, told: None }
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
        if self.counted.is_none_or(|counted| is_over(counted, COUNTED_FOR, now)) {
            self.granted.retain(|_, since| !is_over(*since, WINDOW, now));
            // One that has not asked when its time came is not wanted any more.
            self.waiting.retain(|_, until| !is_over(*until, WINDOW, now));
            let known = self.granted.len() + self.waiting.len();
            (self.population, self.counted) = (population(known), Some(now));
        }
        if self.granted.contains_key(unit) {
            return Answer::Go;
        }
        let pause = self.pause();
        let may_go_at_once = number(self.granted.len()) < limits.at_once(self.population);
        if !may_go_at_once && now < self.next {
            return self.wait(group, unit, pause, now);
        }
        // One that is a little late does not make all others late.
        let on_time = if may_go_at_once { now } else { after(now, -pause) };
        self.next = after(self.next.min(now).max(on_time), pause);
        self.waiting.remove(unit);
        self.granted.insert(unit.clone(), now);
        Answer::Go
    }

    fn wait(&mut self, group: &Text, unit: &U, pause: SignedDuration, now: Timestamp) -> Answer {
        let known = self.waiting.get(unit).copied();
        let until = known.filter(|until| *until > now).unwrap_or_else(|| {
            self.last = after(self.last.max(now), pause);
            self.last
        });
        self.waiting.insert(unit.clone(), until);
        let tell = self.told.is_none_or(|told| is_over(told, WINDOW, now));
        if tell {
            self.told = Some(now);
        }
        let (going, population) = (self.granted.len(), self.population);
        let held = Held { group: group.clone(), going, population, until: Time::of(until) };
        Answer::Wait { until, held, is_new: known.is_none(), tell }
    }

    /// The time between two deletions beyond those that may go at once.
    fn pause(&self) -> SignedDuration {
        let each_minute = (number(self.population) * CRAWL).max(1.0);
        SignedDuration::try_from_secs_f64(60.0 / each_minute).unwrap_or(SignedDuration::from_mins(1))
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

/// Whether so much time has passed since then. A clock that was set back starts anew.
fn is_over(since: Timestamp, time: SignedDuration, now: Timestamp) -> bool {
    let passed = since.duration_until(now);
    passed >= time || passed <= -time
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
        let Answer::Wait { until, held, is_new, tell } = answer else { return None };
        self.decisions.record(now, key, &held);
        self.held.inc_by(u64::from(is_new));
        if tell {
            self.tell(&held);
        }
        let wait = Duration::try_from(now.duration_until(until)).unwrap_or_default();
        Some(Requeue::After(wait, PURPOSE))
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
