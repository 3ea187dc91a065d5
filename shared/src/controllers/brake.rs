//! A brake on mass deletion: it slows down deletions that no user's change explains, beyond a share of the population.
//!
//! A wrong view of the cluster, or owner references that were changed by mistake, would otherwise delete as fast as the
//! apiserver allows. Each group (a kind of object, or nodes) has a share that may be deleted at once; beyond it a few are
//! deleted each minute. Each operator's plan says which deletions a user's change explains; these never ask the brake.
//! The decision is an [`Allowance`], a value that knows no cache and no clock.

mod allowance;
mod nodes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use serde::Serialize;

pub use self::allowance::{Allowance, Answer, Limits};
use crate::api::intern::Text;
use crate::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use crate::api::resource::LEASES;
use crate::api::time::Time;
use crate::process::flags::Mode;
use crate::process::run::Setup;
use crate::transport::clock::instant;
use crate::working::context::ControllerContext;
use crate::working::decisions::{self, Reasoned};
use crate::working::events::PlannedEvent;
use crate::working::worker::Requeue;

/// The reason of the events that report slowed deletions.
pub const MASS_DELETION_SLOWED: &str = "MassDeletionSlowed";
/// Counts each delayed deletion once.
const HELD: &str = "mass_deletion_brake_held";
const HELD_HELP: &str = "Number of deletions that were delayed because no user's change explains them";
const PURPOSE: &str = "the brake on mass deletion";

/// Parses a flag that is a share of a population; 0 switches the brake off.
///
/// # Errors
/// If the text is not a number from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("must be from 0 to 1, but got {share}")) }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub group: Text,
    /// How many deletions of the group were granted within ten minutes.
    pub going: usize,
    pub population: usize,
    pub until: Time,
}

pub struct Brake<U> {
    /// None if it is off.
    limits: Option<Limits>,
    groups: Mutex<BTreeMap<Text, Allowance<U>>>,
    held: Counter,
    ctx: ControllerContext,
    lease: Key,
}

impl<U: Ord + Clone> Brake<U> {
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

    /// Asks for a deletion in the sync of this key, as a unit of a group: `pods`, `nodes`. If it has to wait, records that
    /// as the key's decision and returns when to ask again. When it begins to wait, `about` gets an event, if given. See
    /// [`Allowance::ask`] for `exist`.
    pub fn ask(
        &self,
        key: &Key,
        (group, unit): (&str, &U),
        exist: impl FnOnce() -> usize,
        about: Option<ObjectReference>,
    ) -> Option<Requeue> {
        let group = Text::new(group);
        let (answer, (going, population)) = self.with(&group, |allowance, now| {
            let answer = allowance.ask(unit, exist, now);
            (answer, allowance.going())
        })?;
        let Answer::Wait { again, turn, is_new, report } = answer else { return None };
        let until = Time::of(self.ctx.now().checked_add(turn).unwrap_or(Timestamp::MAX));
        let held = Held { group, going, population, until };
        self.ctx.decide(key, &held);
        self.held.inc_by(u64::from(is_new));
        let message = || format!("Slowed down deletions: {}. --mass-deletion-share=0 removes the limit", held.why());
        for about in about.filter(|_| is_new).into_iter().chain(report.then(|| self.lease())) {
            self.ctx.event(PlannedEvent::warning(about, MASS_DELETION_SLOWED, message()));
        }
        Some(Requeue::After(again, PURPOSE))
    }

    /// A member of a group went: see [`Allowance::gone`].
    pub fn member_gone(&self, group: &str, unit: &U) {
        self.with(&Text::new(group), |members, now| members.gone(unit, now));
    }

    /// A member of a group exists again: see [`Allowance::back`].
    pub fn member_back(&self, group: &str, unit: &U) {
        self.with(&Text::new(group), |members, _| members.back(unit));
    }

    pub fn withdraw(&self, unit: &U) {
        for (group, allowance) in &mut *self.groups() {
            logged(group, allowance, |allowance| allowance.withdraw(unit));
        }
    }

    fn groups(&self) -> MutexGuard<'_, BTreeMap<Text, Allowance<U>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a group; none if the brake is off.
    fn with<R>(&self, group: &Text, change: impl FnOnce(&mut Allowance<U>, Instant) -> R) -> Option<R> {
        let (limits, now, mut groups) = (self.limits?, instant(), self.groups());
        let allowance = groups.entry(group.clone()).or_insert_with(|| Allowance::new(limits, now));
        Some(logged(group, allowance, |allowance| change(allowance, now)))
    }

    /// Every operator may post events about its Lease.
    fn lease(&self) -> ObjectReference {
        let (key, uid, resource_version) = (self.lease.clone(), Uid::default(), ResourceVersion::default());
        ObjectReference { resource: LEASES, key, uid, resource_version }
    }
}

/// Changes a group, and logs when its deletions begin to wait, and when none waits any more.
fn logged<U: Ord + Clone, R>(
    group: &Text,
    allowance: &mut Allowance<U>,
    change: impl FnOnce(&mut Allowance<U>) -> R,
) -> R {
    let before = allowance.waiting();
    let changed = change(allowance);
    let (going, population) = allowance.going();
    let group = group.as_str();
    match (before, allowance.waiting()) {
        (0, 1..) => tracing::warn!(group, going, population, "slowing deletions; no user's change explains them"),
        (1.., 0) => tracing::warn!(group, going, population, "slowed deletions are over"),
        _ => {}
    }
    changed
}

impl Held {
    fn why(&self) -> String {
        let Self { group, going, population, until: _ } = self;
        format!("{going} of {population} {group} affected within 10m0s, and no user's change explains it")
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
        write!(f, "wait until {}: {}", self.until, self.why())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_from_0_to_1() {
        assert_eq!((share("0"), share("0.5"), share("1")), (Ok(0.0), Ok(0.5), Ok(1.0)));
        for wrong in ["-0.1", "1.1", "NaN", "5%", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
